/** Pages of knowledge bases, from files, folders and uploads. */
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { isObjectKey } from '../../../src/core/media/file-link.ts'
import { nameKey } from '../../../src/core/search/name-key.ts'
import { splitTerms } from '../../../src/core/search/terms.ts'
import { readFolder } from '../../../src/markdown/folder.ts'
import { readPage } from '../../../src/markdown/page.ts'
import { renderPlain } from '../../../src/markdown/plain-text.ts'
import { FileProblemError } from '../../../src/markdown/problem.ts'
import { makeSourceKey, SourceFiles } from '../../../src/markdown/source-file.ts'
import { PAGE_MAX_BYTES } from '../../../src/markdown/text.ts'
import { Unpacking } from '../../../src/markdown/unpack.ts'
import { ANY_CHARACTER } from '../../support/any-character.ts'
import { everyRun } from '../../support/every-run.ts'
import { zipOf } from '../../support/zip.ts'

t.test('page from a file', async (t) => {
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
})

t.test('folder of pages', async (t) => {
  const NAMED = { line: 3, locator: null, compiledAt: null, model: null }

  const root = realpathSync(
    t.testdir({ outside: { 'secret.md': 'secret', 'secret.pdf': 'secret' }, folder: {} }),
  )
  const folder = join(root, 'folder')

  function write(path: string, content = path): void {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }

  t.test('pages of every folder in the order of their paths; nothing hidden, nothing else', async (t) => {
    for (const path of ['b.md', 'a/z.MD', 'a/a.markdown', '中文/页面.md', 'x.txt', 'README', 'c.md.bak'])
      write(path)
    for (const path of ['.hidden.md', '.git/a.md', 'a/.obsidian/b.md']) write(path)
    mkdirSync(join(folder, 'folder.md'))
    const { files, problems } = await readFolder(folder)
    t.same(
      files.map(({ path }) => path),
      ['a/a.markdown', 'a/z.MD', 'b.md', '中文/页面.md'],
    )
    t.same(problems, [])
    await t.rejects(readFolder(join(folder, 'b.md')), /is not a folder/)
    await t.rejects(readFolder(join(folder, 'nothing')), /There is no folder/)
  })

  t.test('a name in decomposed characters is the same path', async (t) => {
    write('Cafe\u0301.md')
    const found = (await readFolder(folder)).files.find(({ path }) => path === 'Caf\u00e9.md')
    t.equal(found?.file, join(folder, 'Cafe\u0301.md'))
    write('Caf\u00e9.md')
    t.match((await readFolder(folder)).problems, [{ line: 1, message: /Rename one/ }])
  })

  t.test('links of the file system lead to what is in the folder, and nowhere else', async (t) => {
    const links = join(folder, 'links')
    mkdirSync(links)
    symlinkSync('../b.md', join(links, 'inside.md'))
    symlinkSync('../../outside/secret.md', join(links, 'outside.md'))
    symlinkSync('../../outside', join(links, 'folder'))
    symlinkSync('..', join(links, 'loop'))
    symlinkSync('gone.md', join(links, 'broken.md'))
    symlinkSync('gone.txt', join(links, 'broken.txt'))
    const { files, problems } = await readFolder(folder)
    const inLinks = files.filter(({ path }) => path.startsWith('links/'))
    t.same(inLinks, [{ path: 'links/inside.md', file: join(folder, 'b.md') }])
    const told = problems.filter(({ file }) => file.startsWith('links/')).map(({ file }) => file)
    t.same(told.sort(), ['links/broken.md', 'links/folder', 'links/outside.md'])
  })

  t.test('sources: beside the page, else from the top; never from elsewhere', async (t) => {
    write('a/near.pdf', 'near')
    write('near.pdf', 'far')
    write('files/报告 (2).pdf', 'report')
    symlinkSync(join(root, 'outside/secret.pdf'), join(folder, 'secret.pdf'))
    const sources = new SourceFiles(folder)
    const find = (filename: string) =>
      sources.find({ path: 'a/a.md', file: join(folder, 'a/a.md') }, { ...NAMED, filename })
    t.equal((await find('near.pdf')).file, join(folder, 'a/near.pdf'))
    t.equal((await find('../near.pdf')).file, join(folder, 'near.pdf'))
    const report = await find('files/报告 (2).pdf')
    t.equal(report.file, join(folder, 'files/报告 (2).pdf'))
    const key = makeSourceKey('kb_01J8Z3N4V9QKX2T5W7Y0ABCDEF', report)
    t.match(key, /^sources\/kb_01J8Z3N4V9QKX2T5W7Y0ABCDEF\/[0-9a-f]{64}-[\w.-]*\.pdf$/)
    t.ok(isObjectKey(key))
    for (const name of [
      `.${'y'.repeat(250)}`,
      `a.${'y'.repeat(250)}`,
      `${'n'.repeat(120)}.${'y'.repeat(100)}`,
      'a.报告',
    ]) {
      const named = makeSourceKey('kb_01J8Z3N4V9QKX2T5W7Y0ABCDEF', { ...report, file: `/x/${name}` })
      t.ok(isObjectKey(named), named)
    }
    for (const [filename, message] of [
      ['gone.pdf', /is not there/],
      ['secret.pdf', /is outside of the folder/],
      ['../../outside/secret.pdf', /is outside of the folder/],
      [join(folder, 'near.pdf'), /from the root of the disk/],
      ['.', /is not a file/],
    ] as const) {
      const refused = await find(filename).catch((error: unknown) => error)
      t.ok(refused instanceof FileProblemError, filename)
      t.match((refused as FileProblemError).problems, [{ file: 'a/a.md', line: 3, message }])
    }
  })
})

t.test('uploads are unpacked', async (t) => {
  // Paths of an upload that collide are named in words, without the folder on this machine.
  t.test('files whose paths collide are named', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'unpack-'))
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    const unpacking = new Unpacking(folder)
    const add = (path: string) => unpacking.add(path, Readable.from([Buffer.from('# A')]))
    for (const path of [
      'a.md',
      'notes/b.md',
      'a.md',
      'notes',
      'a.md/c.md',
      `${'x'.repeat(300)}.md`,
      'n\0.md',
      'n\0/d.md',
    ])
      await add(path)
    const taken = 'Another file or folder of the upload has the same path. Rename one.'
    t.same(
      unpacking.problems.map(({ file, message }) => [file.slice(0, 9), message]),
      [
        ['a.md', taken],
        ['notes', taken],
        ['a.md/c.md', taken],
        ['xxxxxxxxx', 'A name in its path is too long. Shorten it.'],
        ['n\0.md', 'Its path has a NUL in it. Rename it.'],
        ['n\0/d.md', 'Its path has a NUL in it. Rename it.'],
      ],
    )
  })

  t.test('a damaged zip is named as one', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'unpack-'))
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    await mkdir(join(folder, 'files'))
    const zip = Buffer.from(await zipOf({ 'a.md': '# Alpha', 'b.md': '# Beta' }, { compress: false }))
    zip.write('X', zip.indexOf('# Alpha'))
    await writeFile(join(folder, 'damaged.zip'), zip)
    await writeFile(join(folder, 'cut.zip'), zip.subarray(0, 20))
    const unpacking = new Unpacking(join(folder, 'files'))
    await unpacking.unzip('damaged.zip', join(folder, 'damaged.zip'))
    await unpacking.unzip('cut.zip', join(folder, 'cut.zip'))
    t.match(unpacking.problems, [
      { file: 'a.md', message: 'It is damaged: its checksum is another. Make the zip again.' },
      { file: 'cut.zip', message: /^It cannot be unpacked: .*[^.]\.$/ },
    ])
    t.equal(unpacking.problems.length, 2)
  })
})

t.test('reader takes any text', async (t) => {
  const RUNS = 300

  const text = fc.string({ unit: ANY_CHARACTER, maxLength: 400 })
  const fragment = fc.constantFrom(
    ...[
      '---',
      '\n',
      '\r\n',
      '# ',
      '- ',
      '> ',
      '```',
      '[[',
      ']]',
      '|',
      '#',
      '`',
      '*',
      '&amp;',
      '&#0;',
      '<',
      '<!--',
    ],
    ...[
      'title: ',
      'tags: [',
      ']',
      'source: ',
      '{',
      '}',
      '"',
      '\\',
      '&a ',
      '*a',
      ': ',
      '\t',
      '\0',
      'a',
      '中',
      '\ufeff',
    ],
  )
  const markup = fc.array(fc.oneof(fragment, text), { maxLength: 60 }).map((parts) => parts.join(''))
  const file = fc.oneof(
    markup,
    markup.map((inner) => `---\n${inner}\n---\n`),
  )

  const isPage = (bytes: Buffer): boolean => {
    try {
      readPage(bytes, 'a.md')
      return true
    } catch (error) {
      if (error instanceof FileProblemError) return false
      throw error
    }
  }

  t.test('a reader of any bytes and any text throws nothing but what it has to say', async () => {
    everyRun(t, { numRuns: RUNS }, [fc.uint8Array({ maxLength: 300 })], (bytes) => {
      isPage(Buffer.from(bytes))
    })
    everyRun(t, { numRuns: RUNS }, [file], (content) => {
      isPage(Buffer.from(content))
    })
  })

  t.test('the body is what is under the front matter, whatever it is', async (t) => {
    everyRun(t, { numRuns: RUNS }, [markup], (content) => {
      const body = content.toWellFormed().replaceAll('\0', '').replace(/\r\n?/g, '\n')
      const read = readPage(Buffer.from(`---\ntitle: x\n---\n${body}`), 'a.md')
      return read.body === body.replace(/^(?:[ \t]*\n)+/, '').trimEnd()
    })
    t.pass()
  })

  t.test('what PostgreSQL cannot store is nowhere in a page', async (t) => {
    everyRun(t, { numRuns: RUNS }, [file], (content) => {
      const bytes = Buffer.from(content)
      if (!isPage(bytes)) return true
      const { ignored, ...page } = readPage(bytes, 'a.md')
      const told = JSON.stringify(page)
      return !told.includes('\\u0000') && !/\\ud[89a-f]/.test(told)
    })
    t.pass()
  })

  t.test('a link that was found is found again by what it names', async (t) => {
    const name = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
      .filter((one) => !/[[\]|#\n\r\\`<>*_&~!]/.test(one))
    everyRun(t, { numRuns: RUNS }, [name], (target) => {
      if (nameKey(target) === '') return true
      const links = renderPlain(`see [[${target}]] and [[${target.toUpperCase()}|x]]`)?.links ?? []
      return links.length === 1 && nameKey(links[0] ?? '') === nameKey(target)
    })
    t.pass()
  })

  t.test('names compare by what they say', async (t) => {
    for (const [one, other] of [
      ['Straße', 'STRASSE'],
      ['ＡＰＩ　Keys', ' api  keys '],
      ['Café', 'Cafe\u0301'],
      ['ΣΑΣ', 'σας'],
      ['ﬁne', 'FINE'],
    ] as const)
      t.equal(nameKey(one), nameKey(other))
    t.not(nameKey('Résumé'), nameKey('Resume'))
  })
})

t.test('work for a page is bounded', async (t) => {
  const problems = (content: string) => {
    try {
      readPage(Buffer.from(content), 'a.md')
    } catch (error) {
      if (error instanceof FileProblemError) return error.problems
      throw error
    }
    return []
  }

  /** Of the size that a page may have: each would take minutes to days. */
  const filled = (unit: string): string => unit.repeat((PAGE_MAX_BYTES - 1_000) / Buffer.byteLength(unit))

  const ENDLESS: Readonly<Record<string, string>> = {
    'emphasis that mixes its marks': filled('*_a'),
    'emphasis within words': filled('x__'),
    'brackets that stay open': filled('['),
    'images that stay open': filled('!['),
    'empty links': filled('[]'),
    'code of many lengths': filled('`a'),
    'tags that stay open': filled('<a '),
    'strokes that stay open': filled('~~a'),
    'an address that ends in brackets': `http://a${filled(')')}`,
    'emphasis within emphasis': `${filled('*a ').slice(0, 500_000)}${filled('b* ').slice(0, 500_000)}`,
    'a table with more columns than text': `${'|a'.repeat(50_000)}\n${'|-'.repeat(50_000)}\n${'|a\n'.repeat(50_000)}`,
  }

  for (const [what, text] of Object.entries(ENDLESS))
    t.test(`${what}: named with its line, at once`, async (t) => {
      const found = problems(`---\ntitle: x\n---\nFirst.\n\n${text}`)
      t.match(found, [{ file: 'a.md', line: 6, message: /too much markup.*Part it by empty lines/ }])
      t.equal(found.length, 1)
    })

  t.test('quotations in one another are too deep, however long the line is', async (t) => {
    t.match(problems(filled('> - ')), [{ line: 1, message: /too much markup|nested too deeply/ }])
  })

  t.test('front matter of many names and aliases is read once', async (t) => {
    const aliases = Array.from({ length: 4_500 }, (_, i) => `k${i}: *x\n`).join('')
    const { ignored, tags } = readPage(Buffer.from(`---\ntags: &x [b]\n${aliases}---\n`), 'a.md')
    t.same(tags, ['b'])
    t.equal(ignored.length, 4_500)
  })

  t.test('long runs of white space cost nothing', async (t) => {
    const gap = filled(' ')
    const { text } = readPage(Buffer.from(`\`\`\`\na${gap}b\n\n  c  \n\`\`\``), 'a.md')
    t.equal(text, `a${gap}b\nc`)
  })

  t.test('what people write is far from the bound', async (t) => {
    const sentence =
      'See the [handbook](http://a.test/b), *all* of [[Holidays|days off]] and `snake_case_name`. '
    const paragraph = sentence.repeat(20)
    const page = `${paragraph}\n\n`.repeat(Math.floor(PAGE_MAX_BYTES / (paragraph.length + 2)))
    t.same(readPage(Buffer.from(page), 'a.md').links, ['Holidays'])
    const list = filled(`- ${sentence}\n`)
    t.same(readPage(Buffer.from(list), 'a.md').links, ['Holidays'], 'a list without empty lines')
    const table = `| a | b |\n|---|---|\n${`| ${sentence.replace('|', ' ')} | 2 |\n`.repeat(10_000)}`
    t.match(readPage(Buffer.from(table), 'a.md').text, /^a b\nSee the handbook, all of/)
    t.same(problems(sentence.repeat(500)), [], 'one line of 45,000 characters')
    t.same(problems(`![x](data:image/png;base64,${filled('A')})`), [], 'an image within the page')
  })

  t.test('a long text without spaces has its terms', async (t) => {
    t.equal(splitTerms('한'.repeat(200_000)).length, 200_000)
  })
})
