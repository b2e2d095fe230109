import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { isObjectKey } from '../../../src/core/media/file-link.ts'
import { folderPages } from '../../../src/markdown/folder.ts'
import { FileProblemError } from '../../../src/markdown/problem.ts'
import { SourceFiles, sourceKey } from '../../../src/markdown/source-file.ts'

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
  const { files, problems } = await folderPages(folder)
  t.same(
    files.map(({ path }) => path),
    ['a/a.markdown', 'a/z.MD', 'b.md', '中文/页面.md'],
  )
  t.same(problems, [])
  await t.rejects(folderPages(join(folder, 'b.md')), /is not a folder/)
  await t.rejects(folderPages(join(folder, 'nothing')), /There is no folder/)
})

t.test('a name in decomposed characters is the same path', async (t) => {
  write('Cafe\u0301.md')
  const found = (await folderPages(folder)).files.find(({ path }) => path === 'Caf\u00e9.md')
  t.equal(found?.file, join(folder, 'Cafe\u0301.md'))
  write('Caf\u00e9.md')
  t.match((await folderPages(folder)).problems, [{ line: 1, message: /Rename one/ }])
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
  const { files, problems } = await folderPages(folder)
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
  const key = sourceKey('kb_01J8Z3N4V9QKX2T5W7Y0ABCDEF', report)
  t.match(key, /^sources\/kb_01J8Z3N4V9QKX2T5W7Y0ABCDEF\/[0-9a-f]{64}-[\w.-]*\.pdf$/)
  t.ok(isObjectKey(key))
  for (const name of [
    `.${'y'.repeat(250)}`,
    `a.${'y'.repeat(250)}`,
    `${'n'.repeat(120)}.${'y'.repeat(100)}`,
    'a.报告',
  ]) {
    const named = sourceKey('kb_01J8Z3N4V9QKX2T5W7Y0ABCDEF', { ...report, file: `/x/${name}` })
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
