/** The bench of the call log. */

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { z } from 'zod'
import { UsageError } from '../../bench/harness/command-line.ts'
import { Random } from '../../bench/harness/random.ts'
import { computeQuantiles } from '../../bench/harness/statistics.ts'
import { statementsTo } from '../../bench/logs/engines/clickhouse-statements.ts'
import {
  type EngineName,
  type Page,
  type PageQuery,
  printPosition,
  readPosition,
} from '../../bench/logs/engines/engine.ts'
import { FULL_POSTGRES_ROWS, FULL_ROWS, KEEP, parseOptions } from '../../bench/logs/options.ts'
import { overRounds, type Timing } from '../../bench/logs/queries/measure.ts'
import {
  FIRST_PAGE,
  OLD_PAGE,
  plainPage,
  QUESTIONS,
  YEAR,
  YOUNG_PAGE,
} from '../../bench/logs/queries/queries.ts'
import { walkPages } from '../../bench/logs/queries/walk.ts'
import { listAims, listSlowPages } from '../../bench/logs/report/aims.ts'
import type { AccountName, LogResults, Measured } from '../../bench/logs/report/results.ts'
import { listBatches } from '../../bench/logs/rows/clickhouse-tables.ts'
import { assertRoom, bytesNeeded, enterGround } from '../../bench/logs/rows/data-folder.ts'
import { rowAt, rowsSql } from '../../bench/logs/rows/generator.ts'
import {
  ACCOUNTS,
  END_MS,
  keyId,
  LARGEST_ACCOUNT_SHARE,
  MODELS,
  makeAccounts,
  START_MS,
} from '../../bench/logs/rows/population.ts'
import { describeProgress, Progress } from '../../bench/logs/rows/progress.ts'
import { ALIAS_RANGE, aliasTable, sharesFrom } from '../../bench/logs/rows/skew.ts'
import { isMet } from '../../bench/report/aim.ts'
import { attemptRow } from '../../schemas/call-log/row.ts'
import { CALL_STATUSES, UNIT_TYPES } from '../../schemas/call-log/words.ts'
import { readDetail } from '../../src/core/call-log/detail-text.ts'
import { readPriceTerms } from '../../src/core/pricing/terms.ts'
import { startEngines } from '../support/engines.ts'

t.test('options', async (t) => {
  t.test('the full size by its name, a tenth of it in PostgreSQL', async (t) => {
    const { rows, postgresRows } = parseOptions(['--rows', '100m'])
    t.equal(rows, FULL_ROWS)
    t.equal(postgresRows, FULL_POSTGRES_ROWS)
  })

  t.test('a small size by default, and nothing is kept', async (t) => {
    const { rows, postgresRows, data, out, seed } = parseOptions([])
    t.same(
      { rows, postgresRows, data, out, seed },
      { rows: 1e6, postgresRows: 2e5, data: null, out: null, seed: 1 },
    )
  })

  t.test('sizes are numbers of rows with a suffix', async (t) => {
    const size = (...args: string[]) => {
      const { rows, postgresRows } = parseOptions(args)
      return [rows, postgresRows]
    }
    t.same(size('--rows', '250k'), [250_000, 200_000])
    t.same(size('--rows', '1.5M', '--postgres-rows', '10_000'), [1_500_000, 10_000])
    t.same(size('--rows', '50k'), [50_000, 50_000], 'no more than there are')
    t.same(size('--postgres-rows', '0'), [1e6, 0])
  })

  t.test('results are written to a separate folder, or to the one that the option names', async (t) => {
    t.equal(parseOptions(['--keep']).data, KEEP)
    t.equal(parseOptions(['--data', 'there']).data, 'there')
  })

  t.test('wrong usage is an error', async (t) => {
    const wrong = (args: string[]): unknown => {
      try {
        return parseOptions(args)
      } catch (error) {
        return error
      }
    }
    for (const args of [
      ['--rows', 'many'],
      ['--rows', '0'],
      ['--rows', '1.5'],
      ['--rows', '9999m'],
      ['--samples', '0'],
      ['--keep', '--data', 'there'],
      ['--fast'],
      ['small'],
    ])
      t.ok(wrong(args) instanceof UsageError, args.join(' '))
  })

  t.test('progress tells rows, their rate and the time that is left', async (t) => {
    t.equal(
      describeProgress(25_000_000, 100_000_000, 5_000_000, 200),
      '25,000,000 of 100,000,000 rows (25 %), 100,000 rows/s, 12 min 30 s left',
    )
    t.equal(describeProgress(5, 10, 5, 0), '5 of 10 rows (50 %), 0 rows/s')
  })

  t.test('a line that stays is on a line of its own, on a terminal too', async (t) => {
    const written: string[] = []
    const progress = new Progress({ isTTY: true, write: (text: string) => written.push(text) })
    progress.show('so far')
    progress.say('done')
    t.same(written, ['\r\x1b[Kso far', '\r\x1b[K', 'done\n'])
  })
})

t.test('rows', async (t) => {
  const ROWS_A_PART_MOST = 1_000_000

  /** When a row ends, but for a disorder of a second: as `rowsSql` has it. */
  const endOf = (row: number, total: number): number =>
    START_MS + Number((BigInt(row) * BigInt(END_MS - START_MS)) / BigInt(total))

  for (const total of [10_000, 1_000_000, 12_345_678, 100_000_000])
    t.test(`the batches of ${total} rows are all rows, each once, none of two months`, async (t) => {
      const batches = listBatches(total)
      t.equal(batches[0]!.from, 0)
      t.equal(batches.at(-1)!.to, total)
      t.equal(batches.at(-1)!.before, END_MS)
      t.ok(batches.every(({ from }, i) => i === 0 || from === batches[i - 1]!.to))
      t.ok(batches.every(({ from, to }) => from < to && to - from <= ROWS_A_PART_MOST))
      for (const { from, to, before } of batches) {
        const month = new Date(before - 1).toISOString().slice(0, 7)
        t.equal(new Date(endOf(from, total)).toISOString().slice(0, 7), month)
        t.equal(new Date(endOf(to - 1, total)).toISOString().slice(0, 7), month)
      }
    })

  t.test('the row of an instant is the first that ends then or later', async (t) => {
    for (const total of [10_000, 12_345_678])
      for (const ms of [
        START_MS,
        START_MS + 1,
        Date.UTC(2023, 5, 1),
        Date.UTC(2024, 1, 29, 12, 34, 56, 789),
      ]) {
        const row = rowAt(ms, total)
        t.ok(endOf(row, total) >= ms)
        t.ok(row === 0 || endOf(row - 1, total) < ms)
      }
    t.equal(rowAt(0, 10_000), 0)
    t.equal(rowAt(END_MS, 10_000), 10_000)
    t.equal(rowAt(END_MS + 1, 10_000), 10_000)
  })
})

t.test('rounds', async (t) => {
  const round = (p50Ms: number, p99Ms: number, first: Timing['first'] = null): Timing => ({
    p50Ms,
    p99Ms,
    maxMs: p99Ms,
    samples: 100,
    rows: 50,
    first,
  })

  t.test('a disturbance in one round of three decides nothing, and is not forgotten', async (t) => {
    const timing = overRounds([round(16, 30), round(40, 900), round(17, 31)])
    t.same(timing, { p50Ms: 17, p99Ms: 31, maxMs: 900, samples: 300, rows: 50, first: null })
  })

  t.test('what is slow in two rounds is slow', async (t) => {
    t.match(overRounds([round(16, 60), round(17, 30), round(15, 55)]), { p99Ms: 55, maxMs: 60 })
  })

  t.test('the time to the first rows, where it was taken', async (t) => {
    const first = (p99Ms: number) => ({ p50Ms: 1, p99Ms, maxMs: p99Ms })
    t.match(overRounds([round(1, 1, first(3)), round(1, 1, first(9)), round(1, 1, first(5))]), {
      first: { p50Ms: 1, p99Ms: 5, maxMs: 9 },
    })
  })
})

t.test('aims', async (t) => {
  const row = (
    engine: EngineName,
    account: AccountName,
    question: string,
    p50Ms: number,
    p99Ms: number,
  ): Measured => ({
    engine,
    account,
    question,
    p50Ms,
    p99Ms,
    maxMs: p99Ms,
    samples: 10,
    rows: 50,
    first: null,
    readRows: 1_000,
  })

  const BROWSER = { samples: 30, p50Ms: 150, p99Ms: 310, maxMs: 310 }

  const resultsOf = (measured: readonly Measured[]): LogResults =>
    ({ measured, questions: QUESTIONS, browser: BROWSER }) as unknown as LogResults

  const results = (measured: readonly Measured[]) =>
    listAims(resultsOf(measured)).map((aim) => [aim.value, isMet(aim)])

  t.test('what was not measured is neither met nor missed', async (t) => {
    t.same(results([]).slice(0, -2), Array(6).fill([null, null]))
  })

  t.test('the slowest page of Tollgate counts, not PostgreSQL and not other answers', async (t) => {
    const measured = [
      row('log', 'largest', FIRST_PAGE, 10, 40),
      row('http', 'median', 'ref', 11, 51),
      row('log', 'median', 'rare', 12, 90),
      row('postgres', 'largest', 'rare', 800, 900),
      row('log', 'largest', 'detail', 30, 300),
      row('http', 'largest', YEAR, 70, 99),
      row('log', 'largest', YEAR, 60, 80),
      row('log', 'median', YEAR, 60, 800),
    ]
    const [page, year] = results(measured)
    t.same(page, [90, false])
    t.same(year, [99, true])
    t.same(
      listSlowPages(resultsOf(measured)).map(({ question, p99Ms }) => [question, p99Ms]),
      [
        ['rare', 90],
        ['ref', 51],
      ],
    )
  })

  t.test('the slowest page on the screen counts', async (t) => {
    t.same(results([]).slice(-2), [
      [310, false],
      [150, true],
    ])
  })

  t.test('costs that should be alike may be off neither way', async (t) => {
    const pages = (largest: number, median: number) => [
      row('log', 'largest', OLD_PAGE, largest, 1),
      row('log', 'median', OLD_PAGE, median, 1),
      row('log', 'largest', YOUNG_PAGE, largest, 1),
    ]
    t.same(results(pages(10, 19))[3], [1.9, true])
    t.same(results(pages(10, 40))[3], [4, false])
    t.same(results(pages(40, 10))[3], [4, false])
    t.same(results(pages(10, 40))[4], [1, true])
    t.same(results(pages(10, 40))[5], [1, true])
  })
})

t.test('population', async (t) => {
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
  const near = (value: number, wanted: number): boolean => Math.abs(value - wanted) < 1e-9

  t.test('shares begin where they are to, fall, and are all of it', async (t) => {
    for (const [count, first] of [
      [1_000, 0.1],
      [10, 0.5],
      [2, 0.6],
    ] as const) {
      const shares = sharesFrom(count, first)
      t.equal(shares.length, count)
      t.ok(near(shares[0]!, first), `${shares[0]}`)
      t.ok(near(sum(shares), 1), `${sum(shares)}`)
      t.ok(shares.every((share, rank) => rank === 0 || share < shares[rank - 1]!))
    }
  })

  t.test('shares that cannot be are refused', async (t) => {
    t.throws(() => sharesFrom(10, 0.1), RangeError)
    t.throws(() => sharesFrom(10, 1), RangeError)
    t.throws(() => sharesFrom(1, 0.5), RangeError)
  })

  /** What share of all draws each slot gets: its own part, and the rest of those that it is the alias of. */
  const sharesOfTable = (shares: readonly number[]): number[] => {
    const { thresholds, aliases } = aliasTable(shares)
    const found = shares.map(() => 0)
    thresholds.forEach((threshold, slot) => {
      const own = threshold / ALIAS_RANGE / shares.length
      found[slot]! += own
      found[aliases[slot]!]! += 1 / shares.length - own
    })
    return found
  }

  t.test('an alias table gives every slot its share', async (t) => {
    const models = MODELS.map(({ share }) => share)
    for (const shares of [
      sharesFrom(ACCOUNTS, LARGEST_ACCOUNT_SHARE),
      models,
      [1],
      [0.5, 0.5],
      [0.999, 0.001],
    ]) {
      const found = sharesOfTable(shares)
      t.ok(
        found.every((share, slot) => near(share, shares[slot]!)),
        `${shares.length} shares`,
      )
    }
  })

  t.test('the shares of the models are all of it', async (t) => {
    t.ok(near(sum(MODELS.map(({ share }) => share)), 1))
  })

  t.test('the same seed makes the same accounts, another one others; no id comes twice', async (t) => {
    const accounts = makeAccounts(1)
    t.equal(JSON.stringify(makeAccounts(1)), JSON.stringify(accounts))
    t.not(makeAccounts(2)[0]!.id, accounts[0]!.id)
    t.equal(new Set(accounts.map(({ id }) => id)).size, ACCOUNTS)
    t.match(accounts[0]!.id, /^acc_[0-9A-HJKMNP-TV-Z]{26}$/)
    const keys = accounts.flatMap((account) =>
      Array.from({ length: account.keys }, (_, key) => keyId(account, key)),
    )
    t.equal(new Set(keys).size, keys.length)
    t.match(keys[0], /^key_[0-9A-HJKMNP-TV-Z]{26}$/)
  })

  t.test('chance is even, stays within its bounds, and is the same for the same seed', async (t) => {
    const random = new Random(7)
    const values = Array.from({ length: 10_000 }, () => random.between(10, 20))
    const again = new Random(7)
    t.same(
      values,
      values.map(() => again.between(10, 20)),
    )
    t.ok(values.every((value) => Number.isInteger(value) && value >= 10 && value < 20))
    const counts = Array.from(
      { length: 10 },
      (_, digit) => values.filter((value) => value === 10 + digit).length,
    )
    t.ok(
      counts.every((count) => count > 850 && count < 1_150),
      counts.join(' '),
    )
    t.throws(() => random.pick([]), RangeError)
  })

  t.test('quantiles are of the times as numbers, in whatever order they came', async (t) => {
    const times = Array.from({ length: 200 }, (_, i) => 200 - i)
    t.same(computeQuantiles(times), { p50Ms: 100, p99Ms: 198, maxMs: 200 })
    t.same(times[0], 200, 'the list stays as it is')
    t.same(computeQuantiles([9, 100, 20]), { p50Ms: 20, p99Ms: 100, maxMs: 100 })
  })
})

t.test('data folder', async (t) => {
  const MARK = { total: 5, generator: 'abc' }

  t.test('a kept folder holds what was noted, for the next run', async (t) => {
    const folder = join(t.testdir(), 'kept')
    const first = await enterGround(folder)
    t.notOk(first.holds('clickhouse', MARK))
    first.note('clickhouse', MARK, { seconds: 7, note: 'well' })
    first.note('clickhouse-begun', MARK)
    first.leave()
    const second = await enterGround(folder)
    t.teardown(() => second.leave())
    t.ok(second.holds('clickhouse', MARK))
    t.same(second.made('clickhouse'), { seconds: 7, note: 'well' })
    t.ok(second.holds('clickhouse-begun', MARK))
    t.notOk(second.holds('clickhouse', { ...MARK, total: 6 }), 'another set')
    t.notOk(second.holds('postgres', MARK))
    second.forget('clickhouse')
    t.notOk(second.holds('clickhouse', MARK))
    t.equal(second.made('clickhouse'), null)
  })

  t.test('a mark that cannot be read is none', async (t) => {
    const ground = await enterGround(t.testdir())
    t.teardown(() => ground.leave())
    writeFileSync(join(ground.folder, 'clickhouse.mark.json'), '{"mark":{"tot')
    t.notOk(ground.holds('clickhouse', MARK))
  })

  t.test('two runs cannot be in one folder', async (t) => {
    const folder = t.testdir()
    const ground = await enterGround(folder)
    await t.rejects(enterGround(folder), /is in use/)
    ground.leave()
    const next = await enterGround(folder)
    next.leave()
  })

  t.test('a folder that is not kept goes with the run, and so does what a killed run left', async (t) => {
    const left = join(tmpdir(), 'tollgate-bench-run-999999999@gone@abcdef')
    mkdirSync(left, { recursive: true })
    const ground = await enterGround(null)
    t.notOk(existsSync(left))
    t.ok(existsSync(ground.folder))
    const beside = await enterGround(null)
    t.ok(existsSync(ground.folder), 'a run at the same time leaves it alone')
    beside.leave()
    ground.leave()
    t.notOk(existsSync(ground.folder))
  })

  t.test('a disk that is too small is reported before anything is written', async (t) => {
    t.throws(() => assertRoom(t.testdir(), Number.MAX_SAFE_INTEGER), /GiB are needed, .* GiB are free/)
    t.doesNotThrow(() => assertRoom(tmpdir(), 1))
    const small = bytesNeeded({ rows: 1_000_000, postgresRows: 0 })
    t.ok(bytesNeeded({ rows: 1_000_000, postgresRows: 1_000_000 }) > small)
    t.ok(bytesNeeded({ rows: 0, postgresRows: 0 }) < small)
  })
})

t.test('walk', async (t) => {
  const QUERY: PageQuery = { ...plainPage({ id: 'acc_1' }, 0, 1), limit: 3 }

  /** An engine whose rows have the numbers up to `rows`; its cursors are the number of rows given so far. */
  const engineOf = (rows: number, change: (page: Page, number: number) => Page = (page) => page) => {
    const asked: (string | null)[] = []
    const page = async ({ cursor, limit }: PageQuery): Promise<Page> => {
      asked.push(cursor)
      const given = Number(cursor ?? 0)
      const ids = Array.from({ length: Math.min(limit, rows - given) }, (_, i) => given + i + 1)
      const next = given + limit < rows ? String(given + limit) : null
      return change({ ids, next }, asked.length)
    }
    return { engine: { name: 'log', page } as const, asked }
  }

  const walked = async (engine: ReturnType<typeof engineOf>['engine'], pages: number): Promise<number[]> => {
    const sizes: number[] = []
    for await (const rows of walkPages(engine, QUERY, pages)) sizes.push(rows)
    return sizes
  }

  t.test('each page is asked for with the cursor of the one before, up to the last', async (t) => {
    const { engine, asked } = engineOf(8)
    t.same(await walked(engine, 100), [3, 3, 2])
    t.same(asked, [null, '3', '6'])
  })

  t.test('a walk ends after so many pages', async (t) => {
    const { engine, asked } = engineOf(100)
    t.same(await walked(engine, 2), [3, 3])
    t.same(asked, [null, '3'])
  })

  t.test('an account without a row has one empty page', async (t) => {
    t.same(await walked(engineOf(0).engine, 100), [0])
  })

  t.test('a row that comes twice ends the walk', async (t) => {
    const { engine } = engineOf(9, (page, number) => (number === 3 ? { ...page, ids: [7, 3, 9] } : page))
    await t.rejects(walked(engine, 100), /log: row 3 came twice, again on page 3/)
  })

  t.test('a page that is short although there are more ends the walk', async (t) => {
    const { engine } = engineOf(9, (page, number) => (number === 2 ? { ...page, ids: [4, 5] } : page))
    await t.rejects(walked(engine, 100), /page 2 has 2 rows, and there are more/)
  })

  t.test('a position is read as it was printed, and nothing else is one', async (t) => {
    const position = { createdAt: 1_735_689_599_999, id: 99_999_999 }
    t.same(readPosition(printPosition(position)), position)
    t.equal(readPosition(null), null)
    for (const text of ['', '5', '5.', 'a.b', '-5.6']) t.throws(() => readPosition(text), RangeError)
  })
})

t.test('logs generator', async (t) => {
  const TOTAL = 1_000_000
  const ROWS = 20_000
  const LOOKED_AT = 400
  const DISORDER_MS = 1_500
  const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
  const ULID_TIME_CHARS = 10

  interface Row {
    readonly id: string
    readonly account_id: string
    readonly request_id: string
    readonly task_id: string
    readonly created_ms: string
    readonly submitted_ms: string
    readonly status: (typeof CALL_STATUSES)[number]
    readonly error_code: string
    readonly unit_type: string
    readonly attempts: string
    readonly attempts_count: number
    readonly detail: string
  }

  const instantOf = (ulid: string): number =>
    [...ulid.slice(0, ULID_TIME_CHARS)].reduce((ms, digit) => ms * 32 + CROCKFORD.indexOf(digit), 0)

  t.test('the rows of the bench', async (t) => {
    const engines = await startEngines(t, { only: ['clickhouse'] })
    const { rows } = statementsTo(engines.clickhouseUrl)
    const accounts = makeAccounts(1)
    const sql = (from: number, to: number) =>
      rowsSql({ seed: 1, accounts, total: TOTAL, from, to, before: END_MS })
    const columns = `id, account_id, request_id, task_id, status, error_code, unit_type, attempts, attempts_count, detail,
    toUnixTimestamp64Milli(created_at) AS created_ms, toUnixTimestamp64Milli(submitted_at) AS submitted_ms`
    const select = (from: number, to: number) =>
      rows<Row>(`SELECT ${columns} FROM (${sql(from, to)}) ORDER BY id`)

    const some = await select(0, LOOKED_AT)
    t.same(
      some.map(({ id }) => Number(id)),
      Array.from({ length: LOOKED_AT }, (_, i) => i + 1),
    )

    t.test('are the same whatever part of them is made', async (t) => {
      t.equal(JSON.stringify(await select(100, 120)), JSON.stringify(some.slice(100, 120)))
    })

    t.test('end in the order of their numbers, but for some disorder, within the two years', async (t) => {
      const last = await select(TOTAL - LOOKED_AT, TOTAL)
      for (const [offset, list] of [
        [0, some],
        [TOTAL - LOOKED_AT, last],
      ] as const)
        for (const [i, row] of list.entries()) {
          const even = START_MS + Math.floor(((offset + i) * (END_MS - START_MS)) / TOTAL)
          const created = Number(row.created_ms)
          if (created < even || created >= even + DISORDER_MS || created >= END_MS)
            t.fail(`row ${row.id} ends at ${created}, not about ${even}`)
        }
      t.equal(last.at(-1)!.id, String(TOTAL))
    })

    t.test('have ids that tell when the call began', async (t) => {
      for (const { request_id, submitted_ms, task_id } of some) {
        if (!/^req_[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(request_id)) t.fail(`no request id: ${request_id}`)
        if (instantOf(request_id.slice(4)) !== Number(submitted_ms))
          t.fail(`${request_id} is not of ${submitted_ms}`)
        if (task_id !== '' && instantOf(task_id.slice(4)) !== Number(submitted_ms))
          t.fail(`${task_id}: another time`)
      }
      t.equal(new Set(some.map(({ request_id }) => request_id)).size, LOOKED_AT)
      t.ok(some.some(({ task_id }) => task_id !== ''))
    })

    t.test('have texts that the service can read', async (t) => {
      for (const row of some) {
        t.ok(CALL_STATUSES.includes(row.status))
        t.ok(row.unit_type === '' || (UNIT_TYPES as readonly string[]).includes(row.unit_type))
        const detail = readDetail(row.detail)
        t.same(detail, JSON.parse(row.detail), 'nothing in it is unknown')
        t.ok(detail.prices === undefined || readPriceTerms(detail.prices) !== null)
        const attempts = row.attempts === '' ? [] : z.array(attemptRow).parse(JSON.parse(row.attempts))
        t.ok(attempts.length === 0 || attempts.length === row.attempts_count)
      }
    })

    t.test('are skewed as they are to be', async (t) => {
      const [shares] = await rows<Record<'largest' | 'success' | 'media', number>>(`
      SELECT countIf(account_id = '${accounts[0]!.id}') / count() AS largest,
             countIf(status = 'success') / count() AS success, countIf(unit_type != '') / count() AS media
      FROM (${sql(0, ROWS)})`)
      const near = (value: number, wanted: number) => Math.abs(value - wanted) < 0.01
      t.ok(near(shares!.largest, 0.1), `largest ${shares!.largest}`)
      t.ok(near(shares!.success, 0.94), `success ${shares!.success}`)
      t.ok(near(shares!.media, 0.07), `media ${shares!.media}`)
    })
  })
})
