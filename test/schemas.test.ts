/** What schemas say: money, media, lists. */
import fc from 'fast-check'
import t from 'tap'
import { z } from 'zod'
import { logQuery } from '../schemas/call-log/query.ts'
import { OPERATIONS } from '../schemas/management/index.ts'
import { avatarRequest } from '../schemas/media/avatars.ts'
import { clipComposeRequest, clipSubtitleRequest } from '../schemas/media/clips.ts'
import { imageEditRequest, imageRequest } from '../schemas/media/images.ts'
import { LYRICS_MAX_CHARS, MUSIC_PROMPT_MAX_CHARS, musicRequest } from '../schemas/media/music.ts'
import { speechRequest } from '../schemas/media/speech.ts'
import { transcriptRequest } from '../schemas/media/transcripts.ts'
import { avatarVideoRequest, lipsyncRequest, motionRequest, videoRequest } from '../schemas/media/videos.ts'
import { voiceRequest } from '../schemas/media/voices.ts'
import {
  CREDIT_DECIMALS,
  type Credits,
  creditsText,
  divideHalfUp,
  parseCredits,
  parseRate,
  printCredits,
  printRate,
  rateText,
} from '../schemas/money.ts'
import { taskListQuery } from '../schemas/tasks/list.ts'

t.test('money is exact', async (t) => {
  // Amounts are parsed, printed and divided without a float. See docs/failure-modes.md, "Money", row 15.
  /** What a wallet can hold: ten digits before the point, eight behind it. */
  const amount = fc.bigInt({ min: -(10n ** 18n) + 1n, max: 10n ** 18n - 1n })
  const check = <T>(what: string, property: fc.IProperty<T>) =>
    t.test(what, async () => fc.assert(property, { numRuns: 500 }))

  check(
    'what is printed is read back',
    fc.property(amount, (credits) => parseCredits(printCredits(credits)) === credits),
  )

  check(
    'what is printed is a decimal number without exponent, plus sign and trailing zeros',
    fc.property(amount, (credits) => /^(0|-?(?!0\d)(\d+)(\.\d*[1-9])?)$/.test(printCredits(credits))),
  )

  check(
    'a price is read back too, to twelve places',
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 22n - 1n }), (rate) => parseRate(printRate(rate)) === rate),
  )

  check(
    'the text is digit for digit the number: padded with zeros, without its point, it is the amount',
    fc.property(amount, (credits) => {
      const [whole = '', fraction = ''] = printCredits(credits).replace('-', '').split('.')
      const digits = BigInt(whole + fraction.padEnd(CREDIT_DECIMALS, '0'))
      return digits === (credits < 0n ? -credits : credits)
    }),
  )

  check(
    'any order of adding and taking away comes to the same, and all of it to nothing',
    fc.property(fc.array(amount, { maxLength: 50 }), (entries) => {
      const sum = (list: readonly Credits[]) => list.reduce((total, entry) => total + entry, 0n)
      const texts = entries.map(printCredits)
      const there = sum(texts.map(parseCredits))
      const back = sum([...texts].reverse().map(parseCredits))
      return there === back && there + sum(entries.map((entry) => -entry)) === 0n
    }),
  )

  check(
    'division rounds to the nearest, a half up',
    fc.property(
      fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }),
      fc.bigInt({ min: 1n, max: 10n ** 20n }),
      (a, b) => {
        // The quotient q is the only one with -b <= 2(a - qb) < b.
        const twiceOff = 2n * (a - divideHalfUp(a, b) * b)
        return -b <= twiceOff && twiceOff < b
      },
    ),
  )

  t.test('tenths add up, as floats do not', async (t) => {
    let sum: Credits = 0n
    for (let i = 0; i < 10; i++) sum += parseCredits('0.1')
    t.equal(printCredits(sum), '1')
    t.equal(printCredits(parseCredits('0.1') + parseCredits('0.2')), '0.3')
  })

  t.test('known amounts', async (t) => {
    const known: [string, bigint, string][] = [
      ['0', 0n, '0'],
      ['-0', 0n, '0'],
      ['121.32', 12_132_000_000n, '121.32'],
      ['404.4', 40_440_000_000n, '404.4'],
      ['0.00000001', 1n, '0.00000001'],
      ['-0.00000001', -1n, '-0.00000001'],
      ['007.50000000000', 750_000_000n, '7.5'],
      ['9999999999.99999999', 10n ** 18n - 1n, '9999999999.99999999'],
    ]
    for (const [text, credits, printed] of known) {
      t.equal(parseCredits(text), credits, text)
      t.equal(printCredits(credits), printed, text)
    }
  })

  t.test('what is no amount is refused, with what is wrong', async (t) => {
    for (const text of [
      '',
      ' 1',
      '1 ',
      '1e3',
      '1.',
      '.5',
      '+1',
      '1,5',
      '0x10',
      'NaN',
      'Infinity',
      '--1',
      '１',
    ])
      t.throws(
        () => parseCredits(text),
        { name: 'RangeError', message: /decimal number/ },
        JSON.stringify(text),
      )
    t.throws(() => parseCredits('0.000000001'), { message: /8 decimal places/ })
    t.throws(() => parseRate('0.0000000000001'), { message: /12 decimal places/ })
    t.throws(() => parseCredits('10000000000'), { message: /10 digits/ })
  })

  t.test('configuration may give an amount as text or as a number; a price is never negative', async (t) => {
    t.equal(creditsText.parse('19.41'), 1_941_000_000n)
    t.equal(creditsText.parse(19.41), 1_941_000_000n)
    t.equal(rateText.parse('0.8'), 800_000_000_000n)
    t.notOk(rateText.safeParse('-1').success)
    t.notOk(creditsText.safeParse(1e21).success)
    t.notOk(creditsText.safeParse(true).success)
    t.match(creditsText.safeParse('1.123456789').error?.issues, [
      { code: 'custom', message: 'An amount has more than 8 decimal places: 1.123456789' },
    ])
  })

  t.test('the reference names the text alone, with its digits', async (t) => {
    const described = (schema: z.ZodType) => z.toJSONSchema(schema, { io: 'input' })
    t.match(described(creditsText), { type: 'string', pattern: '^-?\\d{1,10}(\\.\\d{1,8})?$' })
    t.match(described(rateText), { type: 'string', pattern: '^-?\\d{1,10}(\\.\\d{1,12})?$' })
    t.notOk('anyOf' in described(creditsText))
  })
})

t.test('music prompt counts where it is read', async (t) => {
  // Of prompt and lyrics one is read; the length of the other one does not matter.
  const issuesOf = (asked: object) => {
    const parsed = musicRequest.safeParse({ model: 'songs', ...asked })
    return parsed.success ? [] : parsed.error.issues.map(({ path }) => path.join('.'))
  }

  t.test('the limit holds for the one that is read', async (t) => {
    const prompt = '🐈'.repeat(MUSIC_PROMPT_MAX_CHARS)
    const lyrics = '🐈'.repeat(LYRICS_MAX_CHARS)
    const [longPrompt, longLyrics] = [`${prompt}!`, `${lyrics}!`]
    t.same(issuesOf({ prompt }), [])
    t.same(issuesOf({ prompt, lyrics }), [])
    t.same(issuesOf({ prompt: longPrompt }), ['prompt'])
    t.same(issuesOf({ prompt: longPrompt, lyrics: ' ' }), ['prompt'], 'blank lyrics are none')
    t.same(issuesOf({ prompt: longPrompt, lyrics }), [], 'custom mode ignores the prompt')
    t.same(issuesOf({ prompt: longPrompt, lyrics, instrumental: true }), ['prompt'], 'which then is read')
    t.same(issuesOf({ prompt, lyrics: longLyrics }), ['lyrics'])
    t.same(issuesOf({ prompt, lyrics: longLyrics, instrumental: true }), [], 'nobody sings')
    t.same(issuesOf({ prompt: longPrompt, lyrics: longLyrics }), ['lyrics'])
    t.same(issuesOf({ lyrics: ' ' }), [''])
  })
})

t.test('no media are streamed', async (t) => {
  // A request that makes media and asks for a stream is refused: nothing would answer it as it asks.
  const link = 'https://example.com/a'
  const film = { model: 'm', source_video_url: link, duration: 5 }
  const REQUESTS: readonly (readonly [z.ZodType, object])[] = [
    [imageRequest, { model: 'm', prompt: 'A fox.' }],
    [imageEditRequest, { model: 'm', prompt: 'A fox.', image: link }],
    [videoRequest, { model: 'm', prompt: 'A fox.' }],
    [avatarVideoRequest, { model: 'm', avatar: 'a', audio_url: link, duration: 5 }],
    [lipsyncRequest, { ...film, audio_url: link }],
    [motionRequest, { ...film, content: [{ type: 'image_url', image_url: link }] }],
    [musicRequest, { model: 'm', prompt: 'A fox.' }],
    [speechRequest, { model: 'm', input: 'A fox.' }],
    [voiceRequest, { name: 'Ada', audio_url: link }],
    [avatarRequest, { name: 'Ada', source_url: link }],
    [transcriptRequest, { url: link }],
    [clipSubtitleRequest, { video_url: link }],
    [clipComposeRequest, { model: 'm', video_url: link, asr_id: 'asr' }],
  ]

  const issuesOf = (schema: z.ZodType, asked: object) =>
    schema.safeParse(asked).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? []

  t.test('stream', async (t) => {
    for (const [schema, plain] of REQUESTS) {
      for (const stream of [undefined, null, false]) t.same(issuesOf(schema, { ...plain, stream }), [])
      t.same(issuesOf(schema, { ...plain, stream: true }), [
        'stream: media are not streamed; leave it out, the answer comes whole',
      ])
    }
  })

  t.test('stream_format of speech', async (t) => {
    const plain = { model: 'm', input: 'A fox.' }
    t.same(issuesOf(speechRequest, { ...plain, stream_format: 'audio' }), [])
    t.same(issuesOf(speechRequest, { ...plain, stream_format: 'sse' }), [
      "stream_format: it must be 'audio'; sound is not streamed as events",
    ])
  })
})

t.test('status of a list may be empty', async (t) => {
  const LISTS = {
    image: taskListQuery('image'),
    video: taskListQuery('video'),
    music: taskListQuery('music'),
    speech: taskListQuery('speech'),
    'the call log': logQuery,
  }

  for (const [name, query] of Object.entries(LISTS)) {
    const statusOf = (status: string) => query.safeParse({ status }).data?.status
    t.test(`${name}: what a status leaves empty is no filter`, async (t) => {
      const [one, other] = name === 'the call log' ? ['success', 'error'] : ['failed', 'succeeded']
      for (const status of ['', ',', ' , ']) t.same(statusOf(status), [], JSON.stringify(status))
      t.same(statusOf(`${one}, ,${other},`), [one, other])
      for (const status of ['done', `${one},done`, one.toUpperCase()])
        t.equal(statusOf(status), undefined, status)
    })
  }
})

t.test('what each role may call', async (t) => {
  // An admin has people, keys, agents and knowledge; billing has the money; a member has what their own keys do.
  const ALLOWED: Readonly<Record<string, string>> = {
    owner: `renameAccount createToken listTokens revokeToken createWebhook deleteWebhook listWebhooks replayFailed
      revealCallbackSecret rotateCallbackSecret rotateWebhook showWebhook testWebhook updateWebhook listDeliveries
      replayDelivery showDelivery`,
    'owner admin': `inviteMember listMemberInvitations revokeMemberInvitation approveKey denyKey putMember createKey
      revokeKey updateKey endFormerSecret createAgent deleteAgent discardDraft listAgents publishAgent replaceAgent
      saveDraft showAgent unpublishAgent createBase deleteBase grantBase listBases revokeBase showBase listPages
      searchPages showPage cancelImport listImports showImport startImport cancelTask listTasks showTask listAudit`,
    'owner billing': `listLedger showLedgerMonth openReceipt listPayments showOffer showPayment startPayment listCards removeCard
      saveCard setAutomaticTopUp showAutomaticTopUp showAlerts updateAlerts`,
    'owner admin billing': 'showAccount listMembers deleteBudget putBudget',
    'owner admin member': 'listKeys revealKey showKey rotateKey',
    'owner admin billing member': `listKeyRequests removeMember requestKey listBudgets listCalls listCallValues seriesOfCalls
      showCall
      showHome showUsage sumSessions watchCalls`,
  }
  const found = Map.groupBy(
    OPERATIONS.filter(({ allows }) => Array.isArray(allows)),
    ({ allows }) => (allows as readonly string[]).join(' '),
  )
  const names = [...found].map(([roles, operations]) => [roles, operations.map(({ name }) => name).sort()])
  const wanted = Object.entries(ALLOWED).map(([roles, list]) => [roles, list.split(/\s+/).sort()])
  t.same(Object.fromEntries(names), Object.fromEntries(wanted))
})
