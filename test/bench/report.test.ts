import t from 'tap'
import { isMet } from '../../bench/report/aim.ts'
import { aimsOf } from '../../bench/report/calls/aims.ts'
import { areComparable, inPlacement, placementsIn } from '../../bench/report/calls/placement.ts'
import { reportOf } from '../../bench/report/calls/report.ts'
import { addedTo, medianOf, type Results, type Row, ratioTo } from '../../bench/report/calls/results.ts'
import { remarksOf, tablesOf } from '../../bench/report/calls/tables.ts'
import { scaleOf, toSvg } from '../../bench/report/chart.ts'
import { toPage } from '../../bench/report/report.ts'
import { figure, toMarkdown, toText } from '../../bench/report/table.ts'
import { rotated } from '../../bench/runner.ts'
import type { Metrics } from '../../bench/workloads/workload.ts'

const subject = (name: string, title: string, skipped: string | null = null) => ({
  name,
  title,
  version: skipped ? '' : '1',
  skipped,
})

const thrice = <T>(look: T): T[][] => Array.from({ length: 3 }, () => [look])

const RESULTS: Results = {
  date: '2026-01-01',
  size: 'full',
  rounds: 3,
  pinned: true,
  busyBeforePercent: 1,
  seconds: 10,
  machine: { cpu: 'A <fast> & "quiet" one', cores: 2, memoryGiB: 4, system: 'Linux' },
  node: '22',
  tollgate: '0.1.0',
  subjects: [
    subject('direct', 'straight'),
    subject('nginx', 'nginx'),
    subject('uws-client', 'bare'),
    subject('portkey', 'Portkey', 'no network'),
    subject('tollgate', 'Tollgate'),
  ],
  rows: [
    {
      workload: 'small',
      subject: 'nginx',
      failed: null,
      rounds: [10, 20, 12].map((n) => [{ cpuPerCallUs: n }]),
    },
    {
      workload: 'small',
      subject: 'uws-client',
      failed: null,
      rounds: [15, 30, 18].map((n) => [{ cpuPerCallUs: n }]),
    },
    {
      workload: 'small',
      subject: 'tollgate',
      failed: null,
      rounds: [19, 38, 24].map((n) => [{ cpuPerCallUs: n }]),
    },
    {
      workload: 'latency',
      subject: 'direct',
      failed: null,
      rounds: thrice({ p50Us: 50, p99Us: 90, p99AloneUs: 90 }),
    },
    {
      workload: 'latency',
      subject: 'tollgate',
      failed: null,
      rounds: thrice({ p50Us: 80, p99Us: 190, p99AloneUs: 150 }),
    },
    {
      workload: 'latency',
      subject: 'nginx',
      failed: null,
      rounds: thrice({ p50Us: 70, p99Us: 130, p99AloneUs: 130 }),
    },
    { workload: 'burst', subject: 'nginx', failed: 'status 502', rounds: [] },
    {
      workload: 'settled',
      subject: 'tollgate',
      failed: null,
      rounds: [[{ cpuPerCallUs: 160, natsPerCallUs: 9 }]],
    },
  ],
}

t.test('a figure is a median, and is compared within its own round', async (t) => {
  t.equal(medianOf(RESULTS, 'small', 'nginx', 'cpuPerCallUs'), 12)
  t.equal(ratioTo(RESULTS, 'small', 'tollgate', 'nginx', 'cpuPerCallUs'), 1.9)
  t.equal(addedTo(RESULTS, 'latency', 'tollgate', 'direct', 'p99Us'), 100)
  t.equal(medianOf(RESULTS, 'small', 'portkey', 'cpuPerCallUs'), null)
  t.equal(ratioTo(RESULTS, 'burst', 'tollgate', 'nginx', 'cpuPerChunkUs'), null)
})

t.test('aims compare with the bare parts; an aim is met, missed or not measured', async (t) => {
  const aims = aimsOf(RESULTS)
  t.same(aims.map(isMet), [true, null, false, true, false, null])
  t.equal(aims[0]!.value, 19 / 15)
})

t.test('the added 99th percentile is compared with what nginx adds', async (t) => {
  t.equal(aimsOf(RESULTS)[2]!.value, 100 / 40)
  t.equal(aimsOf(RESULTS)[3]!.value, 60 / 40, 'and with the engines stopped')
  const withoutNginx = RESULTS.rows.filter((row) => row.workload !== 'latency' || row.subject !== 'nginx')
  t.equal(aimsOf({ ...RESULTS, rows: withoutNginx })[2]!.value, null)
})

/** The small calls of a run during which the host moved the cores. */
const moved = (subject: string, near: number, far: number): Row => ({
  workload: 'small',
  subject,
  failed: null,
  rounds: [0, 5, 10].map((more): Metrics[] => [
    { cpuPerCallUs: near, coreRoundTripNs: 90 + more },
    { cpuPerCallUs: (near + far) / 2 },
    { cpuPerCallUs: far, coreRoundTripNs: 500 + more },
  ]),
})
const MOVED: Results = { ...RESULTS, rows: [moved('nginx', 6, 12), moved('tollgate', 15, 18)] }

t.test('samples of cores that share a cache are reported apart from others', async (t) => {
  t.same(placementsIn(RESULTS.rows), [])
  t.same(placementsIn(MOVED.rows), ['shared cache', 'separate caches'])
  t.equal(ratioTo(inPlacement(MOVED, 'shared cache'), 'small', 'tollgate', 'nginx', 'cpuPerCallUs'), 2.5)
  t.equal(ratioTo(inPlacement(MOVED, 'separate caches'), 'small', 'tollgate', 'nginx', 'cpuPerCallUs'), 1.5)
  const text = tablesOf(MOVED).map(toText).join('\n')
  t.match(text, /alone, shared cache\n.*alone, separate caches\n/s)
  t.same(reportOf(MOVED).run.slice(-2), [
    '6 samples with shared cache: 95.0 ns for a round trip between the cores',
    '6 samples with separate caches: 505 ns for a round trip between the cores',
  ])
})

t.test('a placement with fewer than three samples has no figure', async (t) => {
  const row = moved('nginx', 6, 12)
  const rounds = row.rounds.map((looks, round) => (round === 2 ? looks.slice(0, 2) : looks))
  const seldom: Results = { ...MOVED, rows: [{ ...row, rounds }] }
  t.equal(medianOf(inPlacement(seldom, 'shared cache'), 'small', 'nginx', 'cpuPerCallUs'), 6)
  t.equal(medianOf(inPlacement(seldom, 'separate caches'), 'small', 'nginx', 'cpuPerCallUs'), null)
  t.equal(
    medianOf(inPlacement({ ...seldom, rounds: 1 }, 'separate caches'), 'small', 'nginx', 'cpuPerCallUs'),
    12,
  )
})

t.test('a workload repeats until all have samples in one placement, in rounds of the baseline', async (t) => {
  const far = moved('tollgate', 15, 18).rounds.map((looks) => looks.slice(2))
  const near = moved('nginx', 6, 12).rounds.map((looks) => looks.slice(0, 1))
  const row = (subject: string, rounds: Row['rounds']): Row => ({
    workload: 'small',
    subject,
    failed: null,
    rounds,
  })
  t.equal(areComparable(MOVED.rows), true)
  t.equal(areComparable(RESULTS.rows), true, 'the placement is not known')
  t.equal(areComparable([row('tollgate', far)]), true, 'there is no baseline')
  t.equal(areComparable([row('nginx', near), row('tollgate', far)]), false, 'never in one placement')
  const inOthers = [[], [], [], ...far]
  t.equal(areComparable([row('nginx', [...far, [], [], []]), row('tollgate', inOthers)]), false)
  t.equal(areComparable([row('nginx', [...far, ...far]), row('tollgate', inOthers)]), true)
})

t.test('each round begins with another subject', async (t) => {
  const orders = [0, 1, 2, 3].map((round) => rotated(['a', 'b', 'c'], round).join(''))
  t.same(orders, ['abc', 'bca', 'cab', 'abc'])
  t.same(rotated([], 1), [])
})

t.test('a figure shows three digits', async (t) => {
  t.same([0.123, 9.99, 9.996, 12.34, 99.96, 1234.5, -3, null, Number.NaN].map(figure), [
    '0.12',
    '9.99',
    '10.0',
    '12.3',
    '100',
    '1,235',
    '-3.00',
    '–',
    '–',
  ])
})

t.test('a table of text is aligned, names left and figures right', async (t) => {
  const table = {
    title: 'T',
    columns: ['', 'x'],
    rows: [
      ['a', '1'],
      ['long', '100'],
    ],
  }
  t.same(toText(table).split('\n').slice(2), ['        x', '─'.repeat(9), 'a       1', 'long  100'])
  t.equal(toMarkdown(table), '## T\n\n|  | x |\n| --- | ---: |\n| a | 1 |\n| long | 100 |')
  t.match(toMarkdown({ ...table, rows: [['a|b', '1']] }), 'a\\|b')
})

t.test('the report names what failed or was skipped', async (t) => {
  t.same(remarksOf(RESULTS), ['skipped: Portkey: no network', 'FAILED: nginx under burst: status 502'])
  const text = tablesOf(RESULTS).map(toText).join('\n')
  t.match(text, /nginx .*FAILED/)
  t.match(text, /settled call, .* 160 µs +60.0 µs +MISSED/)
  t.match(text, /small call, .* 1.27 x bare parts +2.10 x bare parts +met/)
  t.notMatch(text, /Portkey/)
  t.match(toPage(reportOf(RESULTS), 'latest.svg'), /!\[.+\]\(latest\.svg\)/)
})

/** Returns the names of all elements. Throws where they do not nest. */
const elementsOf = (xml: string): string[] => {
  const open: string[] = []
  const names: string[] = []
  for (const [, closing, name, rest] of xml.matchAll(
    /<(\/?)([a-zA-Z]+)((?:\s+[a-zA-Z0-9:-]+="[^"<]*")*\s*\/?)>/g,
  )) {
    if (closing) {
      if (open.pop() !== name) throw new Error(`</${name}> closes nothing`)
    } else {
      names.push(name!)
      if (!rest!.endsWith('/')) open.push(name!)
    }
  }
  if (open.length > 0) throw new Error(`left open: ${open}`)
  return names
}

const OWN_BAR = /<path[^>]+fill="#0969da"/g
const OTHER_BAR = /<path[^>]+fill="#98a2ae"/g

t.test('a chart is well-formed, and has a bar and a value for every figure', async (t) => {
  const svg = await toSvg(reportOf(RESULTS).chart)
  const names = elementsOf(svg)
  t.equal(names.length, svg.match(/<[a-z]/g)!.length, 'nothing is like an element and is none')
  t.equal(names[0], 'svg')
  t.equal(svg.match(OWN_BAR)!.length, 3)
  t.equal(svg.match(OTHER_BAR)!.length, 3)
  for (const value of ['24.0', '18.0', '12.0', '30.0 (100)', '160']) t.match(svg, `>${value}</text>`)
  t.match(svg, 'A &lt;fast&gt; &amp; "quiet" one')
  t.notMatch(svg, /NaN|undefined|Infinity/)
  for (const [, light] of svg.matchAll(/(?:fill|stroke)="(#\w+)"/g))
    t.match(svg, `[fill="${light}"]`, `${light} has a colour for dark pages`)
})

t.test('a chart of a run that measured nothing is still a chart', async (t) => {
  t.equal(elementsOf(await toSvg(reportOf({ ...RESULTS, rows: [] }).chart))[0], 'svg')
})

t.test('a lonely outlier does not set the scale, a common size does', async (t) => {
  const panel = (aim: number | null, ...values: number[]) => ({
    title: '',
    unit: '',
    aim,
    bars: values.map((value) => ({ label: '', value, note: '', own: false })),
  })
  t.equal(scaleOf(panel(null, 16, 27, 1106)), 27)
  t.equal(scaleOf(panel(null, 372, 11_000, 15_000)), 15_000)
  t.equal(scaleOf(panel(30, 10, 20)), 33)
  t.equal(scaleOf(panel(null, 0, 0, 0, 27, 143)), 143, 'a bar without length is no measure')
  t.ok(scaleOf(panel(null, 0)) > 0)
})
