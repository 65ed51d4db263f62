// SPDX-License-Identifier: Apache-2.0
import { useMemo, useState } from "preact/hooks";
import type { Sample } from "../../api/generated";
import { rate } from "../../api/samples";
import { bytesPerSecond, microseconds, perSecond, quantityText } from "../../format/number";
import { Chart, type Line } from "../../parts/chart";
import { Segments } from "../../parts/segments";

const SPANS = [
  { value: "60", label: "1 min" },
  { value: "300", label: "5 min" },
  { value: "600", label: "10 min" },
] as const;

function line(samples: Sample[], label: string, tone: Line["tone"], value: (sample: Sample) => number, dashed = false): Line {
  return { label, tone, dashed, values: samples.map(value) };
}

export function Charts({ samples }: { samples: Sample[] }) {
  const [span, setSpan] = useState<"60" | "300" | "600">("60");
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
      line(shown, "NFS", "other", per((s) => s.operations), true),
      line(shown, "Flushes", "good", per((s) => s.flushes), true),
    ] },
    { title: "Latency of NFS operations", format: long, binary: false, lines: [
      line(shown, "p50", "read", (s) => s.latency_us.p50),
      line(shown, "p90", "other", (s) => s.latency_us.p90),
      line(shown, "p99", "write", (s) => s.latency_us.p99),
    ] },
    { title: "Layouts", format: often, binary: false, lines: [
      line(shown, "Granted", "read", per((s) => s.layouts_granted)),
      line(shown, "Recalled", "other", per((s) => s.layouts_recalled)),
      line(shown, "Revoked", "write", per((s) => s.layouts_revoked)),
    ] },
  ];
  return (
    <>
      <div class="chart-tools"><Segments label="Time shown" options={SPANS} value={span} onValue={setSpan} /></div>
      <div class="charts">
        {charts.map(({ title, format, binary, lines }) => (
          <Chart key={title} title={title} times={times} seconds={Number(span)} lines={lines} format={format} binary={binary} />
        ))}
      </div>
    </>
  );
}
