import t from 'tap'
import { VERSION } from '../../../src/server/version.ts'
import { command, noEngines, tollgate } from './support.ts'

const ID = 'acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF'

const WRONG = [
  [],
  ['bogus'],
  ['--bogus'],
  ['account'],
  ['account', 'bogus'],
  ['account', 'create'],
  ['account', 'create', '--name', ' '],
  ['account', 'create', '--name', 'A', '--kind', 'company'],
  ['account', 'create', '--name', 'A', '--credit', '1.123456789'],
  ['account', 'show'],
  ['account', 'show', ID, 'extra'],
  ['account', 'limits', ID],
  ['account', 'limits', ID, '--rpm', '0'],
  ['account', 'limits', ID, '--concurrency', 'many'],
  ['wallet', 'topup', ID],
  ['wallet', 'topup', ID, 'lots'],
  ['wallet', 'ledger', ID, '--limit', '1.5'],
  ['key', 'create', '--name', 'A'],
  ['key', 'create', '--account', ID],
  ['key', 'create', '--account', ID, '--name', 'A', '--expires', 'soon'],
  ['key', 'create', '--account', ID, '--name', 'A', '--models', 'a,,b'],
  ['key', 'create', '--account', ID, '--name', 'A', '--spend-cap', '5'],
  ['key', 'create', '--account', ID, '--name', 'A', '--kind', 'agent'],
  ['key', 'create', '--account', ID, '--name', 'A', '--agent', 'agt_1'],
  ['key', 'create', '--account', ID, '--name', 'A', '--kind', 'employee', '--account-logs'],
  ['key', 'create', '--account', ID, '--name', 'A', '--kind', 'compute', '--account-logs'],
  ['key', 'update', ID],
  ['key', 'update', ID, '--spend-cap', 'much'],
  ['key', 'update', ID, '--rpm', '0'],
  ['key', 'update', ID, '--addresses', 'a,,b'],
  ['key', 'rotate'],
  ['user', 'invite', '--email', 'ada@example.com', '--as', 'admin'],
  ['webhook', 'update', 'whe_1'],
  ['payments', 'reconcile', '--days', 'abc'],
  ['payments', 'reconcile', '--days', '31'],
  ...['0', '-1', 'much'].map((factor) => ['catalog', 'diff', 'prices.json', '--per-usd', factor]),
  ...['8d', '1w', '24', '-1h', '999999d'].map((time) => ['key', 'rotate', ID, '--grace', time]),
  ['key', 'request', '--organization', ID, '--name', 'A'],
  ['key', 'approve', 'kreq_1', '--by', ID],
  ['key', 'approve', 'kreq_1', '--spend-cap', '5'],
  ['key', 'deny', 'kreq_1'],
  ['account', 'models', ID],
  ['member', 'add', '--organization', ID],
  ['member', 'add', '--organization', ID, '--account', ID, '--role', 'chief'],
  ['audit', '--limit', '0'],
  ['audit', '--since', 'lately'],
  ['key', 'update', ID, '--enable', '--disable'],
  ['key', 'update', ID, '--account-logs', 'yes'],
  ['agent', 'create', '--account', ID],
  ['agent', 'create', '--file', 'agent.yaml'],
  ['agent', 'update', 'agt_1'],
  ['agent', 'publish'],
  ['agent', 'list'],
  ['config', 'check', 'a.yaml', 'b.yaml'],
]

t.test('wrong usage exits 2 with the reason on stderr and nothing on stdout', async (t) => {
  for (const words of WRONG) {
    const { code, stdout, stderr } = await command(words, noEngines)
    t.equal(code, 2, words.join(' '))
    t.equal(stdout, '', words.join(' '))
    t.match(stderr, /^(error: |Usage: )/, words.join(' '))
  }
})

t.test('the version is printed', async (t) => {
  t.same(await command(['--version'], noEngines), { code: 0, stdout: `${VERSION}\n`, stderr: '' })
})

t.test('the process ends with the same code', async (t) => {
  t.match(await tollgate(['account', 'bogus']), {
    code: 2,
    stdout: '',
    stderr: "error: unknown command 'bogus'",
  })
})
