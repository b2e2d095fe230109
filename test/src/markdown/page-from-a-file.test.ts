import t from 'tap'
import { readPage } from '../../../src/markdown/page.ts'
import { FileProblemError } from '../../../src/markdown/problem.ts'
import { PAGE_MAX_BYTES } from '../../../src/markdown/text.ts'

const page = (text: string, path = 'notes/a.md') => readPage(Buffer.from(text), path)

/** Lines and beginnings of the messages, `line: message`. */
function problems(file: string | Buffer): string[] {
  try {
    readPage(Buffer.from(file as string), 'a.md')
  } catch (error) {
    if (error instanceof FileProblemError)
      return error.problems.map(({ line, message }) => `${line}: ${message}`)
    throw error
  }
  return []
}

t.test('everything that front matter may say', async (t) => {
  const read = page(`---
title: Holidays
summary: How many days there are.
tags: [HR, leave, hr]
aliases: Leave, 休假
confidence: 0.8
needs_review: true
source:
  filename: handbook.pdf
  locator: page 3
  compiled_at: 2026-01-31T12:00:00Z
  model: sonata-large
created: 2020
---

# Another heading

Thirty days.
`)
  t.same(read, {
    title: 'Holidays',
    summary: 'How many days there are.',
    tags: ['HR', 'leave'],
    aliases: ['Leave', '休假'],
    confidence: '0.8',
    needsReview: true,
    source: {
      line: 8,
      filename: 'handbook.pdf',
      locator: 'page 3',
      compiledAt: '2026-01-31T12:00:00Z',
      model: 'sonata-large',
    },
    ignored: ['created'],
    body: '# Another heading\n\nThirty days.',
    text: 'Another heading\nThirty days.',
    links: [],
  })
})

t.test('the title: said, else the first heading, else the name of the file', async (t) => {
  t.equal(page('---\ntitle: 2024\n---\n# Heading').title, '2024')
  t.equal(page('Text\n\n## The *first* [[Other|heading]] &amp; more').title, 'The first heading & more')
  t.equal(page('no heading', 'a/b/Die Größe.markdown').title, 'Die Größe')
  t.equal(page('---\ntitle: ""\n---\n', 'x.md').title, 'x')
  t.equal(page('```\n# code\n```', 'x.md').title, 'x')
})

t.test('no front matter, an empty one, one that is all there is', async (t) => {
  t.match(page('Text'), {
    body: 'Text',
    tags: { length: 0 },
    summary: '',
    confidence: '',
    needsReview: false,
    source: null,
  })
  t.match(page('---\n---\nText'), { body: 'Text' })
  t.match(page('---\n# only a comment\n---\nText'), { body: 'Text' })
  t.match(page('---\ntitle: x\n---'), { title: 'x', body: '' })
  t.match(page(''), { title: 'a', body: '' })
  t.match(page('Text\n---\ntitle: x\n---\n'), { title: 'Text' }, 'only at the very beginning')
})

t.test('a byte order mark and any ends of lines', async (t) => {
  const read = page('\ufeff---\r\ntitle: x\r\ntags: [a]\r\n---\r\nOne\r\nTwo\rThree\r\n')
  t.match(read, { title: 'x', tags: ['a'], body: 'One\nTwo\nThree' })
})

t.test('tags and aliases: lists, or text with commas', async (t) => {
  t.same(page('---\ntags: a, b ,, A\n---\n').tags, ['a', 'b'])
  t.same(page('---\ntags:\n  - a\n  - 2024\n  - true\n  -\n---\n').tags, ['a', '2024', 'true'])
  t.same(page('---\ntags: 2024\naliases:\n---\n').tags, ['2024'])
})

t.test('links: found in text, not in code; each once, as it is first written', async (t) => {
  const read = page(
    [
      'A [[Target]], [[Other|shown]], [[Third#Part|there]], [[TARGET]], **[[Bold]]**, [[页面]], [[ Spaced  out ]].',
      '',
      '| a | b |',
      '|---|---|',
      '| [[Cell\\|x]] | `[[no]]` |',
      '',
      '- item [[In a list]]',
      '> quoted [[In a quotation]]',
      '',
      '    [[indented code]]',
      '',
      '```',
      '[[fenced]]',
      '```',
      '[[#Only a heading]] \\[[escaped]] [[]] [[a|b]c]] [[open [x](y.md)',
    ].join('\n'),
  )
  t.same(read.links, [
    'Target',
    'Other',
    'Third',
    'Bold',
    '页面',
    'Spaced  out',
    'Cell',
    'In a list',
    'In a quotation',
  ])
  t.match(read.text, /^A Target, shown, there, TARGET, Bold, 页面, Spaced {2}out\.\n/)
})

t.test('plain text has no markup', async (t) => {
  const { text } = page(
    '# H\n\na *b* **c** ~~d~~ `e` [f](http://x) ![g](y.png) &lt;h&gt; &#20013; <i>j</i>\\*\n\n<div>k <!-- no --> l</div>\n\n---\n1. m\n2. n\n',
  )
  t.equal(text, 'H\na b c d e f g <h> 中 j*\nk l\nm\nn')
})

t.test('every problem has its line and says what to do', async (t) => {
  t.match(problems('---\ntitle: x\n'), [
    '1: The front matter that begins here has no end. Close it with a line of ---.',
  ])
  t.match(problems('---\n- a\n---\n'), ['2: The front matter must be lines such as "title: A title".'])
  t.match(problems('---\ntitle: a\ntitle: b\n---\n'), [/^3: The front matter: Map keys must be unique/])
  t.match(problems('---\na: b: c\n---\n'), [/^2: The front matter: /])
  t.same(
    problems(
      '---\ntitle: [a]\nsummary: { a: b }\n\ntags: { a: 1 }\naliases:\n  - [x]\nneeds_review: yes please\nsource: {}\n---\n',
    ),
    [
      '2: title must be text, not a list.',
      '3: summary must be text, not nested fields.',
      '5: tags must be a list, or text with commas, not nested fields.',
      '7: An entry of aliases must be text, not a list.',
      '8: needs_review must be true or false.',
      '9: source.filename is required: the name of the file that the page was made from.',
    ],
  )
  t.same(problems('---\ntag: a\nAliases: b\nsource: { file-name: x }\n---\n'), [
    '2: tag: there is no such field. Write tags.',
    '3: Aliases: there is no such field. Write aliases.',
    '4: source.file-name: there is no such field. Write filename.',
    '4: source.filename is required: the name of the file that the page was made from.',
  ])
  t.match(problems(`---\ntitle: ${'x'.repeat(301)}\n---\n`), [
    '2: title has 301 characters, and may have 300. Shorten it.',
  ])
  t.match(problems('---\nsummary: "a\\0b"\n---\n'), ['2: summary has a NUL in it. Take it out.'])
})

t.test('what is not text, or too much of it', async (t) => {
  t.match(problems(Buffer.from([0x61, 0x0a, 0x62, 0xff])), [/^2: This is not UTF-8 text/])
  t.match(problems(Buffer.from('\ufeffHällo', 'utf16le')), [/^1: This is not UTF-8 text/])
  t.match(problems('a\n\n\0'), [/^3: This is not text: it has a NUL/])
  t.match(problems('a'.repeat(PAGE_MAX_BYTES + 1)), [
    /^1: The file has 2097153 bytes, and a page at most 2097152/,
  ])
  t.same(problems('a'.repeat(PAGE_MAX_BYTES)), [])
  t.match(problems('>'.repeat(20_000)), [/^1: Its lists and quotations are nested too deeply/])
  t.match(problems(Array.from({ length: 2_001 }, (_, i) => `[[p${i}]]`).join(' ')), [
    /^1: It links to 2001 pages/,
  ])
})

t.test('a text that begins with an asterisk is no empty one', async (t) => {
  t.match(problems('---\nsummary: a\ntitle: *Important*\n---\n'), [/^3: A text that begins with \* needs/])
  t.match(problems('---\ntags:\n  - a\n  - *b\n---\n'), [/^4: A text that begins/])
  t.equal(page('---\nsummary: &a both\ntitle: *a\n---\n').title, 'both')
  t.equal(
    page('---\na: &a [&b one]\nb: &b two\nc: *a\nsummary: *b\n---\n').summary,
    'two',
    'the last before it',
  )
})

t.test('aliases of YAML do not unfold without end', async (t) => {
  const lines = ['a: &a [x,x,x,x,x,x,x,x,x,x]']
  for (let i = 1; i < 9; i++) lines.push(`a${i}: &a${i} [${Array(10).fill(`*a${i === 1 ? '' : i - 1}`)}]`)
  t.match(problems(`---\n${lines.join('\n')}\n---\n`), [/nested too deeply, or its aliases unfold/])
  t.match(problems('---\na: &a [*a]\n---\n'), [/nested too deeply/])
  t.match(problems(`---\nsummary: "${'x'.repeat(70_000)}"\n---\n`), [/^1: The front matter has more than/])
})
