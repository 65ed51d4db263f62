// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import type { Sample } from "../../api/generated";
import { rate } from "../../api/samples";
import { bytesPerSecond, microseconds, perSecond, quantityText } from "../../format/number";
import { Chart, type Line } from "../../parts/chart";
import { Segments } from "../../parts/segments";
import { go, hrefWith, useRoute } from "../../route";

// As far back as the server keeps its samples.
const SPANS = [
  { value: "60", label: "1 min" },
  { value: "300", label: "5 min" },
  { value: "600", label: "10 min" },
] as const;

function line(samples: Sample[], label: string, tone: Line["tone"], value: (sample: Sample) => number | null, dashed = false): Line {
  return { label, tone, dashed, values: samples.map(value) };
}

// Where nothing was called nothing took any time: there is no value, and the line has a gap.
export function latency(of: (us: Sample["latency_us"]) => number): (sample: Sample) => number | null {
  return (sample) => (sample.operations === 0 ? null : of(sample.latency_us));
}

export function Charts({ samples }: { samples: Sample[] }) {
  const asked = useRoute().query.get("span");
  const span = SPANS.find(({ value }) => value === asked)?.value ?? "300";
  const shown = useMemo(() => samples.slice(-Number(span)), [samples, span]);
  const times = shown.map((sample) => Date.parse(sample.time) / 1000);
  const per = (amount: (sample: Sample) => number) => (sample: Sample) => rate(sample, amount(sample));
  const speed = (value: number) => quantityText(bytesPerSecond(value));
  const often = (value: number) => quantityText(perSecond(value));
  const long = (value: number) => quantityText(microseconds(value));
  const charts = [
    { title: "Throughput", format: speed, binary: true, lines: [
      line(shown, "Read, iWARP", "read", per((s) => s.rdma_read_bytes)),
      line(shown, "Written, iWARP", "write", per((s) => s.rdma_write_bytes)),
      line(shown, "Read, server", "read", per((s) => s.mds_read_bytes), true),
      line(shown, "Written, server", "write", per((s) => s.mds_write_bytes), true),
    ] },
    { title: "Operations", format: often, binary: false, lines: [
      line(shown, "Reads, iWARP", "read", per((s) => s.rdma_reads)),
      line(shown, "Writes, iWARP", "write", per((s) => s.rdma_writes)),
      line(shown, "NFS", "calls", per((s) => s.operations), true),
      line(shown, "Flushes", "flush", per((s) => s.flushes)),
    ] },
    { title: "Latency of NFS operations", format: long, binary: false, lines: [
      line(shown, "p50", "calls", latency((us) => us.p50)),
      line(shown, "p90", "calls-slow", latency((us) => us.p90)),
      line(shown, "p99", "calls-slowest", latency((us) => us.p99)),
    ] },
    { title: "Layouts", format: often, binary: false, lines: [
      line(shown, "Granted", "layouts", per((s) => s.layouts_granted)),
      line(shown, "Recalled", "layouts-recalled", per((s) => s.layouts_recalled)),
      line(shown, "Revoked", "layouts-revoked", per((s) => s.layouts_revoked)),
    ] },
  ];
  return (
    <>
      <div class="chart-tools"><Segments label="Time shown" options={SPANS} value={span}
        onValue={(value) => go(hrefWith({ span: value }), "replace")} /></div>
      <div class="charts">
        {charts.map(({ title, format, binary, lines }) => (
          <Chart key={title} title={title} times={times} seconds={Number(span)} lines={lines} format={format} binary={binary} />
        ))}
      </div>
    </>
  );
}
