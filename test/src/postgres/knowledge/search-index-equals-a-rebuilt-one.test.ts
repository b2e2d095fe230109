import fc from 'fast-check'
import t from 'tap'
import type { Sql } from '../../../../src/postgres/connection.ts'
import { addBase, indexing, startDatabase } from './search-support.ts'

const RUNS = 12
const WORDS = ['copper', 'iron', 'river', 'city', '首都', '长江', 'zürich', 'a']

const page = fc.record({
  title: fc.constantFrom(...WORDS),
  aliases: fc.array(fc.constantFrom(...WORDS), { maxLength: 2 }),
  tags: fc.array(fc.constantFrom(...WORDS), { maxLength: 2 }),
  summary: fc.constantFrom(...WORDS),
  text: fc.array(fc.constantFrom(...WORDS), { maxLength: 12 }).map((words) => words.join(' ')),
})
/** Of few pages, so that they are changed and removed again. */
const row = fc.integer({ min: 1, max: 6 })
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ act: fc.constant('put' as const), row, page }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('remove' as const), row }) },
)
/** Each list is one import. */
const imports = fc.array(fc.array(step, { maxLength: 5 }), { maxLength: 4 })

async function indexOf(sql: Sql, baseId: string) {
  const terms =
    await sql`SELECT term, pages, letters, reversed FROM wiki_terms WHERE base_id = ${baseId} ORDER BY term`
  const postings = await sql`
    SELECT term, part, entries::text FROM wiki_postings WHERE base_id = ${baseId} ORDER BY term, part`
  const pages = await sql`
    SELECT row_id::text, (SELECT array_agg(term || ' ' || impact ORDER BY term)
      FROM unnest(terms, impacts) AS has (term, impact)) AS has
    FROM wiki_page_terms WHERE base_id = ${baseId} ORDER BY row_id`
  return { terms: [...terms], postings: [...postings], pages: [...pages] }
}

t.test('an index that grew by imports is the same as one built from scratch', async (t) => {
  const sql = await startDatabase(t)
  let [compared, lasting] = [0, 0]
  await fc.assert(
    fc.asyncProperty(imports, async (all) => {
      const [grown, rebuilt] = [await addBase(sql), await addBase(sql)]
      const pages = new Map<
        number,
        (typeof page extends fc.Arbitrary<infer Page> ? Page : never) & { rowId: bigint }
      >()
      // Rows are unique over all bases.
      const first = 10 * ++compared
      for (const steps of all)
        await indexing(sql, grown, async (indexer) => {
          for (const one of steps) {
            const rowId = BigInt(first + one.row)
            if (one.act === 'put') {
              pages.set(one.row, { ...one.page, rowId })
              await indexer.put([{ ...one.page, rowId }])
            } else {
              pages.delete(one.row)
              await indexer.remove([rowId])
            }
          }
        })
      const after = await indexOf(sql, grown)
      await sql`DELETE FROM wiki_page_terms WHERE base_id = ${grown}`
      await indexing(sql, rebuilt, (indexer) => indexer.put([...pages.values()]))
      t.same(after, await indexOf(sql, rebuilt))
      lasting += pages.size
    }),
    { numRuns: RUNS },
  )
  t.ok(lasting > 0, 'pages were there to compare')
})

t.test('a base that is deleted leaves no index', async (t) => {
  const sql = await startDatabase(t)
  const base = await addBase(sql)
  const text = { title: 'Copper', aliases: [], tags: [], summary: '', text: 'metal' }
  await indexing(sql, base, (indexer) => indexer.put([{ ...text, rowId: 1n }]))
  t.ok((await indexOf(sql, base)).terms.length > 0)
  await sql`DELETE FROM knowledge_bases WHERE id = ${base}`
  t.same(await indexOf(sql, base), { terms: [], postings: [], pages: [] })
})

t.test('an import that fails leaves the index as it was', async (t) => {
  const sql = await startDatabase(t)
  const base = await addBase(sql)
  const text = { title: 'Copper', aliases: [], tags: [], summary: '', text: 'metal' }
  await indexing(sql, base, (indexer) => indexer.put([{ ...text, rowId: 1n }]))
  const before = await indexOf(sql, base)
  await t.rejects(
    indexing(sql, base, async (indexer) => {
      await indexer.put([{ ...text, title: 'Iron', rowId: 1n }])
      await indexer.finish()
      throw new Error('the file was bad')
    }),
    { message: 'the file was bad' },
  )
  t.same(await indexOf(sql, base), before)
})
