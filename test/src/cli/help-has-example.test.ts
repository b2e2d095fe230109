import t from 'tap'
import { command, noEngines } from './support.ts'

const COMMANDS = [
  ['serve'],
  ['account', 'create'],
  ['account', 'list'],
  ['account', 'show'],
  ['account', 'enable'],
  ['account', 'disable'],
  ['account', 'limits'],
  ['account', 'models'],
  ['wallet', 'topup'],
  ['wallet', 'adjust'],
  ['wallet', 'show'],
  ['wallet', 'ledger'],
  ['wallet', 'verify'],
  ['key', 'create'],
  ['key', 'list'],
  ['key', 'show'],
  ['key', 'reveal'],
  ['key', 'revoke'],
  ['key', 'update'],
  ['key', 'forget'],
  ['master-key', 'rotate'],
  ['key', 'request'],
  ['key', 'requests'],
  ['key', 'approve'],
  ['key', 'deny'],
  ['member', 'add'],
  ['member', 'remove'],
  ['member', 'list'],
  ['user', 'list'],
  ['user', 'show'],
  ['user', 'create'],
  ['user', 'invite'],
  ['user', 'invitations'],
  ['user', 'uninvite'],
  ['user', 'link'],
  ['user', 'enable'],
  ['user', 'disable'],
  ['user', 'role'],
  ['usage'],
  ['audit'],
  ['agent', 'create'],
  ['agent', 'update'],
  ['agent', 'publish'],
  ['agent', 'unpublish'],
  ['agent', 'delete'],
  ['agent', 'list'],
  ['agent', 'show'],
  ['kb', 'create'],
  ['kb', 'list'],
  ['kb', 'show'],
  ['kb', 'import'],
  ['kb', 'grant'],
  ['kb', 'revoke'],
  ['kb', 'delete'],
  ['logs', 'rebuild'],
  ['config', 'check'],
  ['channels', 'list'],
  ['channels', 'pause'],
  ['channels', 'drain'],
  ['channels', 'resume'],
  ['channels', 'test'],
]

t.test('every command says what it does and shows how', async (t) => {
  for (const words of COMMANDS) {
    const name = words.join(' ')
    const { code, stdout, stderr } = await command([...words, '--help'], noEngines)
    t.equal(code, 0, name)
    t.equal(stderr, '', name)
    t.match(stdout, new RegExp(`^Usage: tollgate ${name}`), name)
    t.match(stdout, new RegExp(`Example:\\n {2}npm run -s tollgate -- ${name}`), name)
    if (name !== 'serve') t.match(stdout, /--json/, name)
  }
})
