/** Flags in the words of a prompt say what fields say, and are not charged: none reaches an upstream. */
import fc from 'fast-check'
import t from 'tap'
import { readGridPrompt, withoutVideoFlags } from '../../../src/core/media/prompt-flags.ts'

t.test('flags of video models go, with their values', async (t) => {
  const cases: Readonly<Record<string, string>> = {
    'A fox --dur 60': 'A fox',
    'A fox --duration=60 runs': 'A fox runs',
    '--rs 1080p --ratio 16:9 A fox --seed -1': 'A fox',
    'A fox --wm false --cf true --fps 60 --frames 288': 'A fox',
    'A fox\n--camerafixed\tfalse': 'A fox',
    'A fox --resolution "1080p" runs': 'A fox runs',
    'A fox --DUR 60': 'A fox',
    'A fox--dur 60': 'A fox',
    'A fox --dur60': 'A fox',
    'A fox --dur : 60': 'A fox',
    'A fox --rs\u00a01080p': 'A fox',
    'A fox --rs\u3000=\u20031080p': 'A fox',
    'A fox \u2014dur 60': 'A fox',
    'A fox \u2013\u2013dur 60': 'A fox',
    'A fox \u2212\u2212dur 60': 'A fox',
    'A fox \uff0d\uff0d\uff44\uff55\uff52 60': 'A fox',
    'A fox -\u200b-d\u00adur 60': 'A fox',
    'A fox --fps --dur 5': 'A fox',
    '--dur 5': '',
  }
  for (const [text, left] of Object.entries(cases))
    t.equal(withoutVideoFlags(text), left, JSON.stringify(text))
})

t.test('words stay as they are written', async (t) => {
  for (const text of [
    'A fox, well-known -- or not -- runs.',
    'wait--what happens',
    'seed by seed\u2014seed after seed\u2014grows',
    'The ratio of duration to resolution: 5',
    'a  b\n\n c ',
    '--durable --ratios',
    'e\u0301te\u0301 \u{1f469}\u200d\u{1f467}',
  ])
    t.equal(withoutVideoFlags(text), text)
})

t.test('what is left has no flag, and is found in the time of its length', async (t) => {
  const piece = fc.constantFrom(
    '--',
    '-',
    '\u2014',
    'dur',
    'd',
    'ur',
    ' ',
    '=',
    '60',
    'rs',
    '"',
    '\n',
    'x',
    '\u00ad',
  )
  const reread = /(?:--|\u2014)\s*(?:dur|rs)\s*=?\s*60/
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const left = withoutVideoFlags(pieces.join(''))
      t.notMatch(left.replaceAll('\u00ad', ''), /--(?:dur|rs)(?![a-z_])/)
      return withoutVideoFlags(left) === left || !reread.test(left)
    }),
  )
  for (const text of ['-', '--dur ', '--dur "', '--d', '--dur 5x']) withoutVideoFlags(text.repeat(4000))
})

t.test('of a grid prompt the flags go that change what its images cost', async (t) => {
  const cases: readonly (readonly [string, string, string | null])[] = [
    ['A mill --hd', 'A mill', 'hd'],
    ['--sd A mill', 'A mill', 'sd'],
    ['A mill \u2014HD', 'A mill', 'hd'],
    ['A mill --repeat 4 --turbo --ar 16:9 --v 6', 'A mill', null],
    ['A mill --style raw --no people', 'A mill --style raw --no people', null],
    ['A mill --hdr', 'A mill --hdr', null],
  ]
  for (const [text, prompt, tier] of cases) t.same(readGridPrompt(text), { prompt, tier }, text)
})
