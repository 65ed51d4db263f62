// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import type { Sample } from "../../api/generated";
import { rate } from "../../api/samples";
import { bytesPerSecond, microseconds, perSecond, quantityText } from "../../format/number";
import { Chart, type Line } from "../../parts/chart";
import { HistoryCharts } from "../../history/history_charts";
import { RangeSwitch } from "../../history/range_switch";
import { type Range, RANGES } from "../../history/ranges";
import { useHistory } from "../../history/use_history";
import { Empty } from "../../parts/empty";
import { Loaded } from "../../parts/loaded";
import { useRoute } from "../../route";

// The newest samples, second by second; everything longer is history.
const LIVE = { value: "5m", label: "5 min" } as const;
const LIVE_SECONDS = 300;
const SPANS = [LIVE, ...RANGES] as const;
type Span = (typeof SPANS)[number]["value"];

function line(samples: Sample[], label: string, tone: Line["tone"], value: (sample: Sample) => number | null, dashed = false): Line {
  return { label, tone, dashed, values: samples.map(value) };
}

// Where nothing was called nothing took any time: there is no value, and the line has a gap.
export function latency(of: (us: Sample["latency_us"]) => number): (sample: Sample) => number | null {
  return (sample) => (sample.operations === 0 ? null : of(sample.latency_us));
}

// What is shown: live, or one of the ranges the server keeps.
export function Charts({ samples }: { samples: Sample[] }) {
  const asked = useRoute().query.get("range");
  const span: Span = SPANS.find(({ value }) => value === asked)?.value ?? LIVE.value;
  return (
    <>
      <RangeSwitch ranges={SPANS} value={span} />
      {span === LIVE.value ? <LiveCharts samples={samples} /> : <ServerHistory key={span} range={span} />}
    </>
  );
}

function ServerHistory({ range }: { range: Range }) {
  const history = useHistory({ of: "server" }, range);
  return (
    <Loaded from={history}>
      {(value) => value === null ? <Empty title="No data yet." /> : <HistoryCharts history={value} />}
    </Loaded>
  );
}

function LiveCharts({ samples }: { samples: Sample[] }) {
  const shown = useMemo(() => samples.slice(-LIVE_SECONDS), [samples]);
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
    <div class="charts">
      {charts.map(({ title, format, binary, lines }) => (
        <Chart key={title} title={title} times={times} seconds={LIVE_SECONDS} lines={lines} format={format} binary={binary} />
      ))}
    </div>
  );
}
