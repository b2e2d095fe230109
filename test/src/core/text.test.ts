/** Texts: search, excerpts, cuts, and one normal form. */
import fc from 'fast-check'
import t from 'tap'
import { DETAIL_TEXT_MAX_CHARS, printText } from '../../../src/core/call-log/detail-text.ts'
import { cutText, shorten } from '../../../src/core/json/cut.ts'
import { jobLines } from '../../../src/core/media/job-facts.ts'
import { normalizeText } from '../../../src/core/normalize-text.ts'
import { aroundHits, listMarkedWords } from '../../../src/core/search/around-hits.ts'
import { excerpt } from '../../../src/core/search/excerpt.ts'
import { foldText } from '../../../src/core/search/fold.ts'
import { pageImpacts } from '../../../src/core/search/impact.ts'
import { editDistance, letterBits } from '../../../src/core/search/likeness.ts'
import { cutSnippet } from '../../../src/core/search/snippet.ts'
import { nameTerm, splitTerms, stem } from '../../../src/core/search/terms.ts'
import { REFUSED_MODEL_MAX_CHARS, readRefusedModel } from '../../../src/protocols/request/refused-model.ts'
import { ANY_CHARACTER } from '../../support/any-character.ts'
import { everyRun } from '../../support/every-run.ts'
import { readText, sourceFiles } from '../../support/source-files.ts'

t.test('search terms of any writing', async (t) => {
  const words = (text: string): string[] =>
    splitTerms(text)
      .filter(({ kind }) => kind === 'word')
      .map(({ text }) => text)
  const grams = (text: string): string[] =>
    splitTerms(text)
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
      cutSnippet('Big <b>Cities</b> & "towns"', terms),
      'Big &lt;b&gt;<mark>Cities</mark>&lt;/b&gt; &amp; &quot;towns&quot;',
    )
    t.equal(cutSnippet('北京是中国的首都。', terms), '北京是中国的<mark>首都</mark>。')
    t.equal(cutSnippet('<mark>city</mark>', terms), '&lt;mark&gt;<mark>city</mark>&lt;/mark&gt;')
    const far = cutSnippet(`${'nothing here '.repeat(60)}the city of light ${'and more '.repeat(60)}`, terms)
    t.match(far, /^….*<mark>city<\/mark> of light.*…$/)
    t.ok(far.length < 300)
  })
})

t.test('excerpt', async (t) => {
  t.test('what is short enough stays as it is', async (t) => {
    t.same(excerpt('', 3), { text: '', isCut: false })
    t.same(excerpt('abc', 3), { text: 'abc', isCut: false })
    t.same(excerpt('😀😀😀', 3), { text: '😀😀😀', isCut: false })
  })

  t.test('what is longer is cut behind the last whole character', async (t) => {
    t.same(excerpt('abcd', 3), { text: 'abc', isCut: true })
    t.same(excerpt('😀😀😀', 2), { text: '😀😀', isCut: true })
    t.same(excerpt('a😀b', 2), { text: 'a😀', isCut: true })
    t.same(excerpt('知识库', 2), { text: '知识', isCut: true })
    t.same(excerpt('\ud83d\ud83d\ude00x', 2), { text: '\ud83d😀', isCut: true }, 'half a pair is one too')
  })

  t.test('it is what the first characters are, of any text', async () => {
    fc.assert(
      fc.property(fc.string({ unit: ANY_CHARACTER }), fc.nat({ max: 20 }), (text, max) => {
        const characters = [...text]
        const { text: cut, isCut } = excerpt(text, max)
        return cut === characters.slice(0, max).join('') && isCut === characters.length > max
      }),
    )
  })
})

t.test('part of a text around its hits', async (t) => {
  t.test('the marked words of a snippet', async (t) => {
    t.same(
      listMarkedWords('a <mark>Return</mark> &amp; <mark>R&amp;D</mark> <mark>return</mark> <mark> </mark>'),
      ['return', 'r&d'],
    )
    t.same(listMarkedWords('plain'), [])
  })

  t.test('a short text is whole, a long one begins where most of the words stand', async (t) => {
    t.equal(aroundHits('short\ntext', ['x'], 10), 'short\ntext')
    const line = (words: string) => `${words.padEnd(49, '.')}\n`
    const text = line('one alpha') + line('').repeat(20) + line('two alpha and beta') + line('').repeat(20)
    const part = aroundHits(text, ['alpha', 'beta'], 100)
    t.match(part, /^….*two alpha and beta.*…$/s)
    t.match(aroundHits(text, ['alpha'], 100), /^one alpha/, 'the beginning where that does as well')
    t.match(aroundHits(text, [], 100), /^one alpha/)
    const chinese = `${'甲。'.repeat(500)}乙丙丁。${'甲。'.repeat(500)}`
    t.match(
      aroundHits(chinese, ['丙'], 40),
      /^…(?:甲。){4,}乙丙丁。(?:甲。){4,}…$/,
      'where there are no lines, too',
    )
  })

  t.test('it is never longer than asked for, and nothing else than the text', async (t) => {
    const text = fc.string({
      unit: fc.constantFrom('a', 'b', 'ß', 'İ', '😀', '\n', '. ', '。'),
      maxLength: 80,
    })
    fc.assert(
      fc.property(
        text,
        fc.array(fc.constantFrom('a', 'b', 'ab', '😀')),
        fc.integer({ min: 2, max: 40 }),
        (whole, words, max) => {
          const part = aroundHits(whole, words, max)
          t.ok([...part].length <= max)
          t.ok(whole.includes(part.replace(/^…/, '').replace(/…$/, '')))
        },
      ),
    )
  })
})

t.test('texts are cut between characters', async (t) => {
  // A text that is cut keeps to its limit, and to whole characters: half of one is refused by parsers and engines.
  /** In one of them any limit is in the middle of a face. */
  const FACES = ['', 'a'].map((start) => `${start}${'😀'.repeat(1_000)}`)

  const keptOf = (piece: string): string => Object.values(JSON.parse(`{${piece.slice(1)}}`))[0] as string

  for (const text of FACES) {
    t.test(`a text of the detail of faces${text.startsWith('a') ? ' behind a letter' : ''}`, async (t) => {
      const kept = keptOf(printText('reasoning_effort', text))
      t.ok(kept.isWellFormed())
      t.ok(kept.length <= DETAIL_TEXT_MAX_CHARS, `${kept.length} characters`)
      t.ok(kept.endsWith('😀…'))
    })

    t.test(`a line of a job of faces${text.startsWith('a') ? ' behind a letter' : ''}`, async (t) => {
      const video = { work: 'video', content: [], duration: 5, resolution: text, ratio: null, extra: {} }
      const [, kept = ''] = jobLines(video as never).find(([name]) => name === 'resolution') ?? []
      t.ok(kept.isWellFormed())
      t.ok(kept.length <= DETAIL_TEXT_MAX_CHARS, `${kept.length} characters`)
    })

    t.test(`a refused model of faces${text.startsWith('a') ? ' behind a letter' : ''}`, async (t) => {
      const kept = readRefusedModel(Buffer.from(JSON.stringify({ model: text.slice(0, 403) })))
      t.ok(kept.isWellFormed())
      t.ok(kept.length <= REFUSED_MODEL_MAX_CHARS && kept.length >= REFUSED_MODEL_MAX_CHARS - 1)
    })
  }

  t.test('any text', async () => {
    const text = fc.string({ unit: ANY_CHARACTER })
    fc.assert(
      fc.property(text, fc.nat({ max: 20 }), (whole, maxChars) => {
        const cut = cutText(whole, maxChars)
        return cut.isWellFormed() && whole.startsWith(cut) && cut.length <= maxChars
      }),
    )
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 20 }), (whole, maxChars) => {
        const short = shorten(whole, maxChars)
        return short.isWellFormed() && short.length <= maxChars && (short === whole || short.endsWith('…'))
      }),
    )
  })
})

t.test('texts are normalized by one function', async (t) => {
  // Texts are normalized as the runtime does it, but for long runs of combining marks; and nowhere else.
  const FORMS = ['NFC', 'NFD', 'NFKC', 'NFKD'] as const
  const JOINER = '\u034f'
  const MARKS = /^[\p{M}\uff9e\uff9f]$/u

  t.test('a usual text is normalized as the runtime does it', async (t) => {
    const texts = [fc.string({ unit: ANY_CHARACTER, maxLength: 20 }), fc.constantFrom(...FORMS)] as const
    everyRun(t, { seed: 5, numRuns: 2_000 }, [...texts], (text, form) => {
      if (normalizeText(text, form) !== text.normalize(form)) throw new Error(JSON.stringify(text))
    })
    t.equal(
      normalizeText(`a${'\u0316\u0301'.repeat(15)}`, 'NFC'),
      `a${'\u0316\u0301'.repeat(15)}`.normalize('NFC'),
    )
  })

  t.test('in a run of more than thirty marks a joiner follows each thirty', async (t) => {
    const run = (marks: number) => '\u0316'.repeat(marks)
    t.equal(normalizeText(`a${run(30)}b`, 'NFD'), `a${run(30)}b`)
    t.equal(normalizeText(`a${run(31)}b`, 'NFD'), `a${run(30)}${JOINER}${run(1)}b`)
    t.equal(normalizeText(`a${run(60)}b`, 'NFD'), `a${run(30)}${JOINER}${run(30)}b`)
    const half = normalizeText('\uff9e\u0301'.repeat(100), 'NFKC')
    t.equal(normalizeText(half, 'NFKC'), half, 'again it is the same')
  })

  t.test('only marks, and two letters, become marks at the beginning of their compatible form', async (t) => {
    const others: string[] = []
    for (let code = 0; code < 0x110000; code++) {
      if (code >= 0xd800 && code < 0xe000) continue
      const character = String.fromCodePoint(code)
      const [first = ''] = character.normalize('NFKD')
      if (!MARKS.test(character) && MARKS.test(first)) others.push(code.toString(16))
    }
    // The vowels am of Thai and Lao: their first part is not sorted.
    t.same(others, ['e33', 'eb3'])
  })

  t.test('no other file normalizes texts', async (t) => {
    const files = sourceFiles('schemas', 'pipelines', 'src').filter(
      ({ path }) => path !== 'src/core/normalize-text.ts',
    )
    const normalizing = files.filter(({ path }) => /\.normalize\(['"]NF/.test(readText(path)))
    t.same(
      normalizing.map(({ path }) => path),
      [],
    )
  })
})
