/** The help of every command of the tree. */
import t from 'tap'
import { command, commandTree, noEngines } from './support.ts'

t.test('every command says what it does and shows how', async (t) => {
  const tree = commandTree()
  t.ok(tree.some(({ words }) => words.join(' ') === 'account create'))
  for (const { words, command: described } of tree) {
    const name = words.join(' ')
    t.not(described.description(), '', name)
    const { code, stdout, stderr } = await command([...words, '--help'], noEngines)
    t.equal(code, 0, name)
    t.equal(stderr, '', name)
    t.match(stdout, new RegExp(`^Usage: tollgate ${name}(?![\\w-])`), name)
    t.match(stdout, new RegExp(`Example:\\n {2}npm run -s tollgate -- ${name}(?![\\w-])`), name)
    t.match(stdout, /--json/, name)
  }
})
