import t from 'tap'
import { foldText } from '../../../src/core/search/fold.ts'
import { pageImpacts } from '../../../src/core/search/impact.ts'
import { editDistance, letterBits } from '../../../src/core/search/likeness.ts'
import { snippetOf } from '../../../src/core/search/snippet.ts'
import { stem } from '../../../src/core/search/stem.ts'
import { nameTerm, termsOf } from '../../../src/core/search/terms.ts'

const words = (text: string): string[] =>
  termsOf(text)
    .filter(({ kind }) => kind === 'word')
    .map(({ text }) => text)
const grams = (text: string): string[] =>
  termsOf(text)
    .filter(({ kind }) => kind === 'gram')
    .map(({ text }) => text)

t.test('case, accents, widths and ligatures do not count', async (t) => {
  t.equal(foldText('ＺÜRICH ﬁn'), 'zurich fin')
  t.equal(foldText('Straße, Øresund, Łódź'), 'strasse, oresund, lodz')
  t.equal(foldText('が ガ ｶﾞ 서울'), 'が ガ ガ 서울', 'what is no accent stays')
})

t.test('English words lose their endings, and both forms the same', async (t) => {
  for (const [one, other] of [
    ['cities', 'city'],
    ['running', 'runs'],
    ['boxes', 'box'],
    ['planned', 'plan'],
    ['making', 'make'],
    ['classes', 'class'],
  ] as const)
    t.equal(stem(one), stem(other), `${one} and ${other}`)
  for (const word of ['analysis', 'virus', 'need', 'king', 'thing', 'bus']) t.equal(stem(word), word)
})

t.test('words of scripts with spaces', async (t) => {
  t.same(words("O'Neill's C++ and node.js, C#"), ['oneill', 'c++', 'and', 'nod', 'js', 'c#'])
  t.same(words('Москва — столица'), ['москва', 'столица'])
  t.same(words('!!! — …'), [])
})

t.test('scripts without spaces give the words of the dictionary, and pairs besides', async (t) => {
  t.same(words('北京是首都'), ['北京', '是', '首都'])
  t.same(grams('北京是首都'), ['京是', '是首'], 'pairs that are words are there already')
  t.ok(words('กรุงเทพมหานครเป็นเมืองหลวง').includes('เป็น'))
  t.same(words('서울은 한국'), ['서울은', '한국'])
  t.ok(grams('서울은').includes('서울'), 'a word without its particle')
  t.same(
    words('使用 Kubernetes 部署'),
    ['使用', 'kubernet', '部署'].map((word) => words(word)[0]),
  )
})

t.test('a name is the same however it is written', async (t) => {
  t.equal(nameTerm('New  ZEALAND!'), nameTerm('new zealand'))
  t.equal(nameTerm('Bogotá'), nameTerm('bogota'))
  t.equal(nameTerm('—'), null)
})

t.test('what a hand gets wrong is one error', async (t) => {
  for (const wrong of ['kuberentes', 'kubernete', 'kubernetess', 'kubernates'])
    t.equal(editDistance(wrong, 'kubernetes', 2), 1, wrong)
  t.equal(editDistance('kubenets', 'kubernetes', 2), 2)
  t.equal(editDistance('minikube', 'kubernetes', 2), 3, 'more than two are not counted')
  const differing = letterBits('kubernetes') ^ letterBits('kubernates')
  t.ok(differing.toString(2).replaceAll('0', '').length <= 2)
})

t.test('a word weighs most in the title, then in aliases, tags, summary and text', async (t) => {
  const page = { title: '', aliases: [] as string[], tags: [] as string[], summary: '', text: '' }
  const impact = (change: Partial<typeof page>) => pageImpacts({ ...page, ...change }).get('copper')!
  const falling = [
    impact({ title: 'copper' }),
    impact({ aliases: ['copper'] }),
    impact({ tags: ['copper'] }),
    impact({ summary: `copper ${'word '.repeat(20)}` }),
    impact({ text: `copper ${'word '.repeat(200)}` }),
  ]
  t.same(
    falling,
    [...falling].sort((one, other) => other - one),
  )
  t.equal(new Set(falling).size, falling.length)
  t.ok(impact({ text: 'copper copper' }) > impact({ text: 'copper' }))
  t.ok(impact({ text: 'copper' }) > impact({ text: `copper ${'word '.repeat(500)}` }))
})

t.test('a snippet marks what was found and escapes everything else', async (t) => {
  const terms = new Map([
    ['city', 2],
    ['首都', 1],
  ])
  t.equal(
    snippetOf('Big <b>Cities</b> & "towns"', terms),
    'Big &lt;b&gt;<mark>Cities</mark>&lt;/b&gt; &amp; &quot;towns&quot;',
  )
  t.equal(snippetOf('北京是中国的首都。', terms), '北京是中国的<mark>首都</mark>。')
  t.equal(snippetOf('<mark>city</mark>', terms), '&lt;mark&gt;<mark>city</mark>&lt;/mark&gt;')
  const far = snippetOf(`${'nothing here '.repeat(60)}the city of light ${'and more '.repeat(60)}`, terms)
  t.match(far, /^….*<mark>city<\/mark> of light.*…$/)
  t.ok(far.length < 300)
})
