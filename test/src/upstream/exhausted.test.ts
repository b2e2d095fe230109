/** What this machine has run out of is distinguished from what the upstream refuses. */
import t from 'tap'
import { classifyConnectError } from '../../../src/upstream/connection/socket.ts'

const errorOf = (code: string, syscall = 'connect') => Object.assign(new Error(code), { code, syscall })

for (const [code, kind] of [
  ['EMFILE', 'exhausted'],
  ['ENFILE', 'exhausted'],
  ['ENOBUFS', 'exhausted'],
  ['EADDRNOTAVAIL', 'exhausted'],
  ['ECONNREFUSED', 'connect'],
  ['EHOSTUNREACH', 'connect'],
] as const)
  t.equal(classifyConnectError(errorOf(code), false), kind, code)

t.equal(classifyConnectError(errorOf('ENOTFOUND', 'getaddrinfo'), false), 'dns')
t.equal(classifyConnectError(errorOf('EPROTO'), true), 'tls')
const mixed = new AggregateError([errorOf('EMFILE'), errorOf('ECONNREFUSED')])
t.equal(classifyConnectError(mixed, false), 'connect', 'one of its addresses was reached for')
t.equal(classifyConnectError(new AggregateError([errorOf('EMFILE'), errorOf('EMFILE')]), false), 'exhausted')
