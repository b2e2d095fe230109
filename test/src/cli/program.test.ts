/** The program: its commands, their help, wrong usage, and what lines they print. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import t from 'tap'
import type { z } from 'zod'
import { CALL_STATUSES } from '../../../schemas/call-log/words.ts'
import { OPERATIONS } from '../../../schemas/management/index.ts'
import type { CommandForm, Operation } from '../../../schemas/management/operation.ts'
import { findConfigFile } from '../../../src/cli/config/config.ts'
import { printProgress } from '../../../src/cli/logs/rebuild.ts'
import { MESSAGE_MAX_CHARS, printCall } from '../../../src/cli/logs/tail.ts'
import { EXTRAS } from '../../../src/cli/operations/extras.ts'
import { runOperation } from '../../../src/cli/operations/run.ts'
import { DEMONSTRATION_FILE } from '../../../src/config/demonstration.ts'
import { lockDataDir } from '../../../src/embedded/data-dir.ts'
import type { OperatorCall } from '../../../src/postgres/call-log/calls.ts'
import { VERSION } from '../../../src/server/version.ts'
import { testDataDir } from '../../support/engines.ts'
import { RUN_ADDRESS } from '../../support/run-address.ts'
import { command, commandTree, noEngines, tollgate } from './support.ts'

t.test('operations are commands', async (t) => {
  // What operations say of themselves as commands names fields that there are.
  const words = (text = ''): string[] => text.split(' ').filter((word) => word !== '')
  const fieldsOf = (schema: unknown): string[] => Object.keys((schema as z.ZodObject).shape)

  /** Fields of the answer that may be columns: `wallet.held` too. */
  function columnsOf({ answer }: Operation): string[] {
    const { shape } = answer.schema as z.ZodObject
    const entry = 'next_cursor' in shape ? (shape.data as z.ZodArray).element : answer.schema
    return Object.entries((entry as z.ZodObject).shape).flatMap(([name, field]) =>
      'shape' in field ? [name, ...fieldsOf(field).map((inner) => `${name}.${inner}`)] : [name],
    )
  }

  const forms = OPERATIONS.flatMap((operation) =>
    (operation.commands ?? []).map((form): [Operation, CommandForm] => [operation, form]),
  )

  t.test('every field that a command names is one of its operation', async (t) => {
    for (const [operation, form] of forms) {
      const flagged = Object.values(form.flags ?? {}).flatMap(([, values]) => Object.keys(values))
      const named = [...words(form.args), ...words(form.options), ...words(form.required), ...flagged]
      const fields = fieldsOf(operation.input)
      for (const name of [...named, ...Object.keys(form.values ?? {})])
        t.ok(fields.includes(name), `${form.words}: ${name}`)
      // Agents show the fields of their file among their own.
      if (EXTRAS[form.words]?.shape !== undefined) continue
      const columns = columnsOf(operation)
      for (const name of words(form.columns)) t.ok(columns.includes(name), `${form.words}: column ${name}`)
    }
  })

  t.test('every command that ends something asks first', async (t) => {
    // A grant or an invitation is given again in one step.
    const harmless = ['kb revoke', 'user uninvite']
    const ends = /\b(abandon|cancel|delete|disable|drain|end|fail|forget|pause|refund|remove|revoke)\b/
    for (const [{ method }, { words, effect }] of forms)
      if (method === 'DELETE' || ends.test(words))
        t.equal((EXTRAS[words]?.effect ?? effect) === undefined, harmless.includes(words), words)
  })

  t.test('every command of an operation has what it needs', async (t) => {
    const output = { answer() {}, error() {}, isColoured: false }
    for (const [operation, { words }] of forms) {
      const context = { wiring: noEngines, output, isNegativeAnswer() {} }
      // Found, it goes on to the engines, of which there are none here.
      await t.rejects(runOperation(operation, {}, context), /no such command/, words)
    }
  })

  t.test('what goes beyond an operation belongs to a command', async (t) => {
    const names = commandTree().map((command) => command.words.join(' '))
    for (const name of Object.keys(EXTRAS)) t.ok(names.includes(name), name)
  })
})

t.test('help has example', async (t) => {
  // The help of every command of the tree.
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
})

t.test('wrong usage exits 2', async (t) => {
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
})

t.test('configuration of the service is found', async (t) => {
  const ELSEWHERE = { DATABASE_URL: 'postgres://u:p@127.0.0.1:9/x', TOLLGATE_MASTER_KEY: '00'.repeat(32) }

  const dataDir = await testDataDir(t)
  const env = { TOLLGATE_DATA_DIR: dataDir }
  const file = join(dataDir, 'a.yaml')
  writeFileSync(file, 'trial_credit: "1"\n')

  t.test(
    'a data directory without a past has the demonstration; a database elsewhere has none',
    async (t) => {
      t.equal(findConfigFile(env), DEMONSTRATION_FILE)
      t.throws(() => findConfigFile({ ...env, ...ELSEWHERE }), /runs elsewhere\. Set TOLLGATE_CONFIG/)
      t.equal(findConfigFile({ ...env, ...ELSEWHERE, TOLLGATE_CONFIG: file }), file)
    },
  )

  t.test('a running service names its own, then the data directory remembers it', async (t) => {
    const lock = await lockDataDir(dataDir)
    t.teardown(() => lock.release())
    lock.writeRunFile({ ...RUN_ADDRESS, config_file: file })
    lock.rememberConfig(file)
    t.equal(findConfigFile(env), file)
    t.equal(findConfigFile({ ...env, ...ELSEWHERE }), file)
    t.equal(
      findConfigFile({ ...env, TOLLGATE_CONFIG: '/etc/other.yaml' }),
      '/etc/other.yaml',
      'unless one is named',
    )

    rmSync(file)
    const gone = (what: string) =>
      new RegExp(`${what} .*${file}, which no longer exists\\. Set TOLLGATE_CONFIG`)
    t.throws(() => findConfigFile(env), gone('that runs in'))
    writeFileSync(file, 'trial_credit: "1"\n')
    lock.release()
    t.equal(findConfigFile(env), file)
    rmSync(file)
    t.throws(() => findConfigFile(env), gone('that ran last in'))
  })

  t.test('a demonstration leaves no memory', async (t) => {
    const lock = await lockDataDir(dataDir)
    t.teardown(() => lock.release())
    lock.writeRunFile(RUN_ADDRESS)
    lock.rememberConfig(null)
    t.equal(findConfigFile(env), DEMONSTRATION_FILE)
    lock.release()
    t.equal(findConfigFile(env), DEMONSTRATION_FILE)
  })
})

t.test('log line', async (t) => {
  const call = (more: Partial<OperatorCall> = {}): OperatorCall => ({
    object: 'log',
    id: 7,
    created_at: '2026-03-10T15:30:00.250Z',
    submitted_at: '2026-03-10T15:29:59.000Z',
    booked_at: '2026-03-10T15:30:00.300Z',
    account_id: 'acc_a',
    key_id: 'key_a',
    key_name: 'Laptop',
    key_prefix: 'sk-tollgate-0123abcd',
    model: 'sonata-large',
    protocol: 'chat-completions',
    stream: true,
    status: 'success',
    error_code: null,
    error_message: null,
    input_tokens: 1200,
    output_tokens: 340,
    cached_tokens: 0,
    cache_write_tokens: 0,
    reasoning_tokens: 0,
    server_tool_calls: 0,
    unit_count: null,
    unit_type: null,
    cost: '0.049',
    estimate: '0.96',
    usage_source: 'upstream',
    latency_ms: 1250,
    ttfb_ms: 120,
    channel_id: 'primary',
    request_id: 'req_a',
    task_id: null,
    result_urls: [],
    result_expires_at: null,
    call_count: 1,
    session_id: null,
    upstream_cost: null,
    attempts_count: 1,
    attempts: [],
    ...more,
  })

  const COLOUR_CHARS = '\u001b[32m'.length
  const line = (more: Partial<OperatorCall> = {}): string => printCall(call(more), false)

  t.test('one call, one line, without what it does not have', async (t) => {
    t.equal(
      line(),
      '2026-03-10 15:30:00.250  success      acc_a  sk-tollgate-0123abcd  sonata-large          ' +
        'in 1200 out 340  0.049 credits  1250 ms, first byte 120  req_a\n',
    )
  })

  t.test('cached tokens, units, attempts and errors where there are any', async (t) => {
    t.match(line({ cached_tokens: 100 }), '  in 1200 (100 cached) out 340  ')
    t.match(line({ unit_type: 'image', unit_count: '2' }), '  image × 2  ')
    t.match(line({ attempts_count: 3 }), '  3 attempts  ')
    t.match(line({ call_count: 1400 }), '  1400 calls  ')
    t.match(line({ ttfb_ms: null }), '  1250 ms  req_a')
    const failed = line({ status: 'error', error_code: 'upstream_error', error_message: 'Too busy.' })
    t.match(failed, '  upstream_error: Too busy.  req_a')
    t.match(line({ status: 'interrupted', error_message: 'Gone.' }), '  Gone.  req_a')
    t.match(line({ model: '', status: 'rejected', attempts_count: 0 }), /rejected {5}.* {2}- {21}in /)
  })

  t.test('what others wrote stays in its line, and short', async (t) => {
    const evil = line({ error_code: 'x', error_message: 'a\nb\u001b[2J\u202ec', model: 'm\r' })
    t.equal(evil.indexOf('\n'), evil.length - 1)
    t.match(evil, 'x: a?b?[2J?c')
    t.match(evil, ' m? ')
    const long = line({ error_message: 'y'.repeat(10_000) })
    t.match(long, `${'y'.repeat(MESSAGE_MAX_CHARS - 1)}…  req_a`)
    t.notMatch(long, 'y'.repeat(MESSAGE_MAX_CHARS))
  })

  t.test('colours by status, and the same text without them', async (t) => {
    const colours = new Map(
      CALL_STATUSES.map((status) => {
        const row = call({ status, error_message: 'why', attempts_count: 2 })
        const coloured = printCall(row, true)
        t.equal(stripVTControlCharacters(coloured), printCall(row, false))
        return [status, coloured.split(status)[0]?.slice(-COLOUR_CHARS)]
      }),
    )
    t.equal(colours.get('success'), '\u001b[32m')
    t.equal(colours.get('error'), '\u001b[31m')
    t.equal(new Set(colours.values()).size, 4)
    t.notMatch(line(), '\u001b')
  })
})

t.test('logs rebuild', async (t) => {
  // `tollgate logs rebuild`: what it says, and when it fails.
  t.test('progress is printed as rows, pace and what is left', async (t) => {
    t.equal(
      printProgress({ rows: 1_200_000, total: 8_000_000 }, 12_000),
      '1,200,000 of 8,000,000 rows (15 %), 100,000 rows/s, 1 min 8 s left',
    )
    t.equal(printProgress({ rows: 0, total: 7 }, 0), '0 of 7 rows (0 %), 0 rows/s')
    t.equal(printProgress({ rows: 7, total: 7 }, 7), '7 of 7 rows (100 %), 1,000 rows/s, 0 s left')
    t.match(printProgress({ rows: 1, total: 7_201 }, 1000), /, 2 h 0 min left$/)
  })

  t.test('the answer says how many rows there are, and how many were dropped by age', async (t) => {
    const wiring = { ...noEngines, rebuildLog: async () => ({ rows: 12_345, dropped: 678 }) }
    const json = await command(['logs', 'rebuild', '--json'], wiring)
    t.equal(json.code, 0)
    t.match(JSON.parse(json.stdout), { rows: 12_345, dropped_by_age: 678, seconds: 0 })
    const text = await command(['logs', 'rebuild'], wiring)
    t.equal(text.stdout, 'rows            12345\ndropped_by_age  678\nseconds         0\n')
  })

  t.test('a rebuild that fails says why', async (t) => {
    const rebuildLog = async () => {
      throw new Error('Another rebuild of the call log is under way')
    }
    const { code, stderr } = await command(['logs', 'rebuild'], { ...noEngines, rebuildLog })
    t.equal(code, 1)
    t.equal(stderr, 'error: Another rebuild of the call log is under way\n')
  })

  t.test('calls that only the log has are deleted on request, after a question', async (t) => {
    const unbooked = {
      calls: 1_234,
      cost: '5.5',
      accounts: [{ account_id: 'a', calls: 1_234, cost: '5.5', is_known: true }],
    }
    const asked: string[] = []
    const wiringWith = (answer: string | null) => ({
      ...noEngines,
      rebuildLog: async (_: unknown, confirmDeletion?: (sum: typeof unbooked) => Promise<void>) => {
        if (confirmDeletion === undefined) throw new Error('only the log has some')
        await confirmDeletion(unbooked)
        return { rows: 1, dropped: 0 }
      },
      ask: async (question: string) => {
        asked.push(question)
        return answer
      },
    })
    t.match(await command(['logs', 'rebuild'], wiringWith('y')), {
      code: 1,
      stderr: /only the log has some/,
    })
    t.match(await command(['logs', 'rebuild', '--yes'], wiringWith('y')), { code: 1 })
    t.same(asked, [])
    t.match(await command(['logs', 'rebuild', '--delete-unbooked'], wiringWith('n')), { code: 1 })
    t.match(asked, [
      /^Only the call log has 1,234 calls of 1 account, which cost 5\.5 credits\. They would be deleted for good\. Do it\? /,
    ])
    t.match(await command(['logs', 'rebuild', '--delete-unbooked'], wiringWith(null)), {
      code: 1,
      stderr: /Add --yes to delete them\. Nothing was changed/,
    })
    t.match(await command(['logs', 'rebuild', '--delete-unbooked'], wiringWith('y')), { code: 0 })
    t.match(await command(['logs', 'rebuild', '--delete-unbooked', '--yes'], wiringWith(null)), { code: 0 })
  })
})
