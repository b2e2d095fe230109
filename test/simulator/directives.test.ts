import t from 'tap'
import { FAULT_NAMES } from '../../simulator/directives/faults.ts'
import {
  DIRECTIVE_NAMES,
  DirectiveError,
  mergeDirectives,
  readDirectives,
  splitModelName,
} from '../../simulator/directives/grammar.ts'

t.test('a model name ends where its directives begin', async (t) => {
  t.same(splitModelName('sim-large'), { model: 'sim-large', directives: null })
  t.same(splitModelName('sim-large@ttft=5,tag=a@b'), { model: 'sim-large', directives: 'ttft=5,tag=a@b' })
})

t.test('commas and semicolons separate, blanks do not matter, a flag stands alone', async (t) => {
  t.same(readDirectives(' ttft=50 ;tps=100,, reasoning_text; sse=crlf+nospace '), {
    ...{ ttft: 50, tps: 100, reasoning_text: true, sse: ['crlf', 'nospace'] },
  })
  t.same(readDirectives(null), {})
  t.same(readDirectives(undefined), {})
  t.same(readDirectives(''), {})
})

t.test('an object says the same', async (t) => {
  t.same(readDirectives({ ttft: 50, tps: '100', reasoning_text: true }), {
    ttft: 50,
    tps: 100,
    reasoning_text: true,
  })
})

t.test('a value in a string is percent-encoded, in an object literal', async (t) => {
  t.same(readDirectives('text=a%2C%20b%3B%20%E4%BD%A0'), { text: 'a, b; 你' })
  t.same(readDirectives({ text: 'a%2C, b; 你' }), { text: 'a%2C, b; 你' })
})

t.test('every fault is read', async (t) => {
  const faults: [string, unknown][] = [
    ['reset:0', { kind: 'reset', afterBytes: 0 }],
    ['reset:head', { kind: 'reset_head' }],
    ['truncate:12', { kind: 'truncate', afterBytes: 12 }],
    ['cut:12', { kind: 'cut', afterBytes: 12 }],
    ['hang', { kind: 'hang' }],
    ['hang:12', { kind: 'hang_after', afterBytes: 12 }],
    ['status:503', { kind: 'status', status: 503 }],
    ['stream_error', { kind: 'stream_error', afterTokens: 0 }],
    ['stream_error:4', { kind: 'stream_error', afterTokens: 4 }],
    ['no_stream_options', { kind: 'no_stream_options' }],
    ['refuse', { kind: 'refuse' }],
    ['accept_then_cut', { kind: 'accept_then_cut' }],
    ['no_done', { kind: 'no_done' }],
    ['garbage', { kind: 'garbage' }],
  ]
  for (const [text, fault] of faults) t.same(readDirectives(`fault=${text}`), { fault }, text)
  t.same(new Set(faults.map(([text]) => text.split(':')[0])), new Set(FAULT_NAMES), 'none is missing here')
})

t.test('directives of media are read', async (t) => {
  t.same(readDirectives('seconds=7.5,size=64x48,poll_fault=reset:head,accept_then_cut'), {
    seconds: 7.5,
    size: { widthPixels: 64, heightPixels: 48 },
    poll_fault: 'reset:head',
    fault: { kind: 'accept_then_cut' },
  })
})

t.test('the later of two sources wins, directive by directive', async (t) => {
  const merged = mergeDirectives(readDirectives('ttft=1,tps=2'), {}, readDirectives({ tps: 3 }))
  t.same(merged, { ttft: 1, tps: 3 })
})

t.test('what is unknown or out of range is named', async (t) => {
  const wrong: [unknown, RegExp][] = [
    ['speed=3', /no directive "speed"/],
    ['__proto__=3', /no directive "__proto__"/],
    [{ constructor: 1 }, /no directive "constructor"/],
    ['ttft=fast', /"ttft" takes a whole number/],
    ['ttft=-1', /"ttft" takes a whole number/],
    ['ttft=600001', /"ttft" takes a whole number from 0 to 600000/],
    ['times=0', /"times"/],
    ['split=0', /"split"/],
    ['tokens', /"tokens"/],
    ['reasoning_text=maybe', /"reasoning_text" takes true or false/],
    ['usage=often', /"usage" is one of asked/],
    ['sse=crlf+tabs', /"sse" is one of/],
    ['fault=explode', /"fault" is one of reset/],
    ['fault=reset', /"fault" reset takes a whole number/],
    ['fault=reset:1.5', /"fault" reset/],
    ['fault=status:99', /"fault" status 99/],
    ['fault=status:204', /"fault" status 204/],
    ['fault=refuse:3', /"fault" refuse takes no argument/],
    ['poll_fault=reset', /"poll_fault" reset takes a whole number/],
    ['accept_then_cut=no', /no directive "accept_then_cut"/],
    ['outcome=luck', /"outcome" is one of success/],
    ['seconds=0', /"seconds" takes seconds above 0/],
    ['size=5000x10', /"size" takes a size/],
    ['id=a b', /"id" takes up to 64 letters/],
    ['text=%ff', /"text" is not percent-encoded/],
    [{ ttft: null }, /"ttft" takes a string, a number or a boolean/],
    [7, /a string or an object/],
    [['ttft=1'], /a string or an object/],
  ]
  for (const [source, message] of wrong) {
    t.throws(() => readDirectives(source), { constructor: DirectiveError, message }, JSON.stringify(source))
  }
})

t.test('the reference has every directive and every fault', async (t) => {
  const { readFile } = await import('node:fs/promises')
  const reference = await readFile(new URL('../../docs/simulator.md', import.meta.url), 'utf8')
  for (const name of [...DIRECTIVE_NAMES, ...FAULT_NAMES]) t.match(reference, `| \`${name}`, name)
})
