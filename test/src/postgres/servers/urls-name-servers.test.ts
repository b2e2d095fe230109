/** What a URL of PostgreSQL says of servers, and which of them is used. */
import t from 'tap'
import { parseServerUrl, printServers, TARGETS } from '../../../../src/postgres/servers/address.ts'
import { chooseServer, type ServerState } from '../../../../src/postgres/servers/finder.ts'

const read = (url: string) => parseServerUrl(url, 'read-write')

t.test('hosts, ports and the kind of server', async (t) => {
  t.match(read('postgres://u:p@h/db'), {
    url: 'postgres://u:p@h/db',
    addresses: [{ host: 'h', port: 5432 }],
    target: null,
    tls: null,
  })
  t.match(read('postgresql://u:p%40@h1:5433,h2,[::1]:7/db?sslmode=require&target_session_attrs=any'), {
    url: 'postgresql://u:p%40@h1:5433/db?sslmode=require',
    addresses: [
      { host: 'h1', port: 5433 },
      { host: 'h2', port: 5432 },
      { host: '::1', port: 7 },
    ],
    target: 'any',
  })
  t.equal(read('postgres://h1,h2/db').target, 'read-write')
  t.equal(parseServerUrl('postgres://h1,h2/db', 'standby').target, 'standby')
  t.match(read('postgres://u@%2Frun%2Fpostgresql/db').addresses, [{ host: '/run/postgresql' }])
  t.equal(printServers('postgres://u:p@h1:1,h2:2/db?x=y'), 'h1:1,h2:2/db')
  t.throws(() => read('postgres://u:p@h1:x/db'), /"h1:x" is no server/)
  t.throws(() => read('postgres://h/db?target_session_attrs=slave'), /must be one of any, read-write/)
})

const [one, two, three] = [1, 2, 3].map((port) => ({ host: 'h', port }))
const primary = (timeline = '00000001'): ServerState => ({ isRecovering: false, isReadOnly: false, timeline })
const standby: ServerState = { isRecovering: true, isReadOnly: true, timeline: null }
const fenced: ServerState = { isRecovering: false, isReadOnly: true, timeline: '00000001' }

t.test('each kind of server', async (t) => {
  const all = [
    { address: one!, state: fenced },
    { address: two!, state: standby },
    { address: three!, state: primary() },
  ]
  const chosen = Object.fromEntries(TARGETS.map((target) => [target, chooseServer(all, target, null)]))
  t.same(chosen, {
    any: one,
    'read-write': three,
    'read-only': one,
    primary: one,
    standby: two,
    'prefer-standby': two,
  })
  const [, , only] = all
  t.equal(chooseServer([only!], 'standby', null), null)
  t.equal(chooseServer([only!], 'prefer-standby', null), three)
  t.equal(chooseServer([{ address: one!, state: null }], 'any', one!), null)
})

t.test('the one in use stays, but for a primary of a later timeline', async (t) => {
  const both = (first: ServerState, second: ServerState) => [
    { address: one!, state: first },
    { address: two!, state: second },
  ]
  t.equal(chooseServer(both(primary(), primary()), 'read-write', two!), two)
  t.equal(chooseServer(both(primary('00000001'), primary('00000002')), 'read-write', one!), two)
  t.equal(chooseServer(both(primary('0000000A'), primary('00000009')), 'read-write', null), one)
  t.equal(chooseServer(both(standby, standby), 'standby', two!), two)
})
