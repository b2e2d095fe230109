import t from 'tap'
import type { Sql } from '../../../../src/postgres/connection.ts'
import { searchPages } from '../../../../src/postgres/knowledge/search.ts'
import { addBase, addPages, readable, startDatabase, titlesOf } from './search-support.ts'

let sql: Sql
let base: string

t.before(async () => {
  sql = await startDatabase(t)
  base = await addBase(sql)
  await addPages(sql, base, [
    {
      title: 'France',
      aliases: ['法国', 'République française'],
      tags: ['country', 'Europe'],
      summary: 'A state in Western Europe.',
      text: 'The capital of France is Paris & it has <b>old</b> towns.',
    },
    { title: 'Paris', tags: ['city'], summary: 'Capital of France.', text: 'Paris lies on the Seine.' },
    { title: 'Travel notes', text: 'Somebody went through France once, and liked the bread.' },
    { title: 'Zürich', tags: ['city'], text: 'Zürich lies at the end of a lake.' },
    { title: 'Kubernetes', tags: ['software'], text: 'Kubernetes schedules containers on a cluster.' },
    { title: 'Container ship', tags: ['transport'], text: 'A ship that carries containers.' },
    { title: '北京', tags: ['城市'], summary: '中国的首都。', text: '北京位于华北平原，有三千年历史。' },
    { title: '上海', tags: ['城市'], summary: '中国最大的城市。', text: '上海位于长江入海口。' },
    { title: '光合作用', tags: ['生物'], text: '植物利用阳光把二氧化碳变成糖。' },
    { title: 'กรุงเทพมหานคร', text: 'กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย' },
    { title: '서울', text: '서울은 대한민국의 수도이다.' },
    { title: '東京タワー', text: '東京タワーは日本の電波塔です。' },
  ])
})

const first = async (query: string): Promise<string | undefined> => (await titlesOf(sql, [base], query))[0]

t.test('a title goes before a text that has its word', async (t) => {
  t.same(await titlesOf(sql, [base], 'France'), ['France', 'Paris', 'Travel notes'])
})

t.test('aliases, accents, widths and endings', async (t) => {
  t.equal(await first('republique FRANCAISE'), 'France')
  t.equal(await first('法国'), 'France')
  t.equal(await first('zurich'), 'Zürich')
  t.equal(await first('ＺＵＲＩＣＨ lakes'), 'Zürich')
  t.equal(await first('carrying container'), 'Container ship')
})

t.test('typing errors and words that are not finished', async (t) => {
  t.equal(await first('kuberentes'), 'Kubernetes')
  t.equal(await first('Kubernets clustr'), 'Kubernetes')
  t.equal(await first('kube'), 'Kubernetes')
  t.same(await titlesOf(sql, [base], 'zzzzzz'), [])
})

t.test('questions in languages without spaces', async (t) => {
  t.equal(await first('请问中国的首都是哪座城市？'), '北京')
  t.equal(await first('中国最大的城市'), '上海')
  t.equal(await first('光合'), '光合作用', 'the beginning of a title')
  t.equal(await first('植物怎么利用阳光'), '光合作用')
  t.equal(await first('เมืองหลวงของประเทศไทย'), 'กรุงเทพมหานคร')
  t.equal(await first('대한민국 수도'), '서울')
  t.equal(await first('日本の電波塔'), '東京タワー')
})

t.test('a word that is cut ends with a whole character', async (t) => {
  const long = `a${'𐌰'.repeat(30)}`
  const other = await addBase(sql)
  await addPages(sql, other, [{ title: 'Gothic', text: long }])
  t.same(await titlesOf(sql, [other], long), ['Gothic'])
})

t.test('a query without a word finds nothing', async (t) => {
  for (const query of ['', '  ', '!?…', '。。'])
    t.same(await searchPages(sql, await readable(sql, [base]), query, { limit: 10, offset: 0 }), {
      totalHits: 0,
      results: [],
    })
})

t.test('a message as long as one may be is a query', async (t) => {
  const message = `${'They told me many things about ships and bread and I forgot them all again. '.repeat(12)}What is Kubernetes?`
  const [result] = (await searchPages(sql, await readable(sql, [base]), message, { limit: 5, offset: 0 }))
    .results
  t.ok(result)
})

t.test('a result says where it was found', async (t) => {
  const { totalHits, results } = await searchPages(sql, await readable(sql, [base]), 'capital France', {
    limit: 1,
    offset: 0,
  })
  t.equal(totalHits, 3)
  t.match(results, [
    {
      kb_id: base,
      title: 'France',
      tags: ['country', 'Europe'],
      confidence: 'high',
      needs_review: false,
      snippet:
        'The <mark>capital</mark> of <mark>France</mark> is Paris &amp; it has &lt;b&gt;old&lt;/b&gt; towns.',
    },
  ])
})

t.test('what only the summary has is marked there', async (t) => {
  const own = await addBase(sql)
  await addPages(sql, own, [{ title: 'Animals', summary: 'Of the <quokka>.', text: 'They are small.' }])
  const { results } = await searchPages(sql, await readable(sql, [own]), 'quokka', { limit: 1, offset: 0 })
  t.equal(results[0]?.snippet, 'Of the &lt;<mark>quokka</mark>&gt;.')
})

t.test('several bases are one list, and each result names its own', async (t) => {
  const other = await addBase(sql)
  await addPages(sql, other, [{ title: 'France at work', text: 'About France.' }])
  const bases = await readable(sql, [base, other])
  const { results } = await searchPages(sql, bases, 'France', { limit: 10, offset: 0 })
  t.same(new Set(results.map(({ kb_id }) => kb_id)), new Set([base, other]))
  t.equal(results[0]?.title, 'France')
  t.notOk((await titlesOf(sql, [base], 'France')).includes('France at work'))
})

t.test('walking through the pages of a result shows each hit once', async (t) => {
  const many = await addBase(sql)
  const count = 700
  await addPages(
    sql,
    many,
    Array.from({ length: count }, (_, index) => ({
      title: `Note ${index}`,
      text: `A common word, and ${index % 3 === 0 ? 'a copper kettle' : 'an iron pot'}, ${'again '.repeat(index % 7)}.`,
    })),
  )
  const bases = await readable(sql, [many])
  for (const query of ['common word', 'copper kettle common']) {
    const seen = new Set<string>()
    const limit = 50
    let total = Number.POSITIVE_INFINITY
    for (let offset = 0; offset < total; offset += limit) {
      const { totalHits, results } = await searchPages(sql, bases, query, { limit, offset })
      total = totalHits
      t.equal(results.length, Math.min(limit, total - offset))
      for (const { id } of results) seen.add(id)
    }
    t.equal(seen.size, total)
    t.equal((await searchPages(sql, bases, query, { limit, offset: total })).totalHits, total)
  }
})
