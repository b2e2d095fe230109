import t from 'tap'
import { type Page, type PageQuery, printPosition, readPosition } from '../../../bench/logs/engines/engine.ts'
import { plainPage } from '../../../bench/logs/queries/queries.ts'
import { walkPages } from '../../../bench/logs/queries/walk.ts'

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
