/** The adapters of speech. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { findMediaAdapter } from '../../../../src/channels/media/registry.ts'
import { openaiSpeech } from '../../../../src/channels/providers/openai/speech.ts'
import {
  answerOf,
  channelOf,
  fileWith,
  formOf,
  headerOf,
  jsonOf,
  linked,
  producedIn,
  stored,
  submitOf,
} from '../support.ts'

t.test('speech adapters', async (t) => {
  const elevenlabs = findMediaAdapter('elevenlabs')!
  const voicesPlace = elevenlabs.presets?.voice
  if (voicesPlace?.type !== 'asked') throw new Error('no list of voices')
  const elevenlabsVoices = voicesPlace.source

  const openai = channelOf('openai-speech', 'https://up.example/v1')
  const eleven = channelOf('elevenlabs', 'https://eleven.example')
  const mp3 = readFileSync(new URL('../../../fixtures/media/plain.mp3', import.meta.url))
  const speech = { work: 'speech', input: 'Good morning.', speed: 1 }
  const voice = { work: 'voice', name: 'Ada', audio: stored('ada.mp3', 'audio/mpeg') }

  t.test('OpenAI is always told a voice, and a speed only if it is another than usual', async (t) => {
    const request = openaiSpeech.submit(openai, submitOf(speech, 'tts-1'))
    t.equal(request.url, 'https://up.example/v1/audio/speech')
    t.equal(headerOf(request, 'authorization'), 'Bearer k-1')
    t.strictSame(jsonOf(request), {
      model: 'tts-1',
      input: 'Good morning.',
      voice: 'alloy',
      response_format: 'mp3',
    })
    t.match(jsonOf(openaiSpeech.submit(openai, submitOf({ ...speech, voice: 'nova', speed: 1.25 }))), {
      voice: 'nova',
      speed: 1.25,
    })
  })

  t.test('ElevenLabs has the voice in the path, which cannot lead elsewhere', async (t) => {
    const request = elevenlabs.submit(eleven, submitOf(speech, 'eleven_v3'))
    const { pathname, search } = new URL(request.url)
    t.match(pathname, /^\/v1\/text-to-speech\/[A-Za-z0-9]{20}$/)
    t.equal(search, '?output_format=mp3_44100_128')
    t.equal(headerOf(request, 'xi-api-key'), 'k-1')
    t.equal(headerOf(request, 'authorization'), undefined)
    t.strictSame(jsonOf(request), { text: 'Good morning.', model_id: 'eleven_v3' })
    const pathOf = (voice: string) =>
      new URL(elevenlabs.submit(eleven, submitOf({ ...speech, voice })).url).pathname
    t.equal(pathOf('v-1'), '/v1/text-to-speech/v-1')
    t.equal(pathOf('../voices/add?'), '/v1/text-to-speech/..%2Fvoices%2Fadd%3F')
    t.equal(pathOf('..'), '/v1/text-to-speech/-')
    const slow = elevenlabs.submit(eleven, submitOf({ ...speech, speed: 0.8 }))
    t.match(jsonOf(slow), { voice_settings: { speed: 0.8 } })
  })

  for (const adapter of [openaiSpeech, elevenlabs]) {
    const read = (status: number, body: unknown, type?: string) =>
      adapter.readSubmit(answerOf(status, body, type ? { 'content-type': type } : {}), submitOf(speech))

    t.test(`sound from ${adapter === elevenlabs ? 'ElevenLabs' : 'OpenAI'} has its own length`, async (t) => {
      for (const type of ['audio/mpeg', 'application/octet-stream', undefined]) {
        const outcome = producedIn(read(200, mp3, type))
        const { seconds, files } = outcome.result
        t.ok(seconds !== null && seconds >= 1.5 && seconds < 1.6, String(seconds))
        t.strictSame(files, [fileWith({ role: 'audio', media_type: 'audio/mpeg', seconds })])
        t.strictSame(outcome.inline, [{ file: 0, bytes: mp3, mediaType: 'audio/mpeg' }])
      }
      const opus = read(200, 'OggS', 'Audio/Ogg; codecs=opus')
      t.match(opus, { result: { seconds: null }, inline: [{ mediaType: 'audio/ogg' }] })
      // Under no other name, whatever it is called: it is handed out by the gateway.
      t.match(read(200, mp3, 'text/html'), { inline: [{ mediaType: 'audio/mpeg' }] })
    })

    t.test('text in place of sound is no success', async (t) => {
      const json = 'application/json; charset=utf-8'
      t.strictSame(read(200, { error: { message: 'no credit' } }, json), {
        type: 'refused',
        status: 502,
        message: 'no credit',
      })
      t.equal(read(200, '', 'audio/mpeg').type, 'unknown')
      t.equal(read(200, '<html>', 'text/html').type, 'unknown')
      t.equal(read(200, '{"cut', json).type, 'unknown')
      t.equal(read(200, '<svg>', 'image/svg+xml').type, 'unknown')
      for (const type of ['audio/mpeg', 'application/octet-stream', undefined]) {
        t.equal(read(200, '<html>', type).type, 'unknown')
        t.equal(read(200, '{"cut', type).type, 'unknown')
        for (const body of [{}, { error: { message: 'no credit' } }])
          t.match(read(200, JSON.stringify(body), type), { type: 'refused', status: 502 })
      }
    })

    t.test('refusals keep status and words', async (t) => {
      const bodies = [
        { detail: { status: 'voice_not_found', message: 'No such voice.' } },
        { detail: [{ loc: ['body', 'text'], msg: 'No such voice.', type: 'missing' }] },
        { detail: 'No such voice.' },
        { error: { message: 'No such voice.', type: 'invalid_request_error', code: null } },
      ]
      for (const body of bodies) {
        t.strictSame(read(422, body), { type: 'refused', status: 422, message: 'No such voice.' })
      }
    })
  }

  t.test('a plan of the operator’s that is used up is no wrong key', async (t) => {
    const read = (status: string) =>
      elevenlabs.readSubmit(answerOf(401, { detail: { status, message: 'No.' } }), submitOf(speech))
    t.strictSame(read('quota_exceeded'), { type: 'refused', status: 402, message: 'No.' })
    t.strictSame(read('invalid_api_key'), { type: 'refused', status: 401, message: 'No.' })
    const quota = { error: { code: 'insufficient_quota', message: 'Pay.' } }
    t.match(openaiSpeech.readSubmit(answerOf(429, quota), submitOf(speech)), { type: 'refused', status: 402 })
  })

  t.test('a voice is learned from bytes', async (t) => {
    const link = linked('https://example.com/ada.mp3')
    const asked = submitOf({ ...voice, audio: link })
    t.strictSame(elevenlabs.takesIn?.(asked.job), [link])
    t.strictSame(elevenlabs.takesIn?.(submitOf(voice).job), [])
    const request = elevenlabs.submit(eleven, submitOf(voice))
    t.equal(request.url, 'https://eleven.example/v1/voices/add')
    t.equal(headerOf(request, 'xi-api-key'), 'k-1')
    t.strictSame(formOf(request), [
      ['name', 'Ada'],
      ['files', 'inputs/ada.mp3'],
    ])
  })

  t.test('a voice is made, refused, or nobody knows', async (t) => {
    const read = (body: unknown, status = 200) =>
      elevenlabs.readSubmit(answerOf(status, body), submitOf(voice))
    t.match(read({ voice_id: 'v-9', requires_verification: false }), {
      type: 'produced',
      result: { made_id: 'v-9', files: { length: 0 } },
      inline: { length: 0 },
    })
    t.match(read({ voice_id: 'v-9', requires_verification: true }), { type: 'refused', status: 400 })
    t.match(read({ detail: { status: 'voice_limit_reached', message: 'Too many voices.' } }, 400), {
      type: 'refused',
      status: 400,
      message: 'Too many voices.',
    })
    t.match(read({ detail: { message: 'No.' } }), { type: 'refused', status: 502, message: 'No.' })
    for (const body of ['', '[]', '{}', '{"voice_id":""}']) t.equal(read(body).type, 'unknown', body)
  })

  t.test('only voices that the vendor made itself are for everybody', async (t) => {
    t.equal(elevenlabsVoices.request(eleven).url, 'https://eleven.example/v1/voices')
    const voices = [
      { voice_id: 'v-1', name: 'George', category: 'premade' },
      { voice_id: 'v-2', name: 'A customer', category: 'cloned' },
      { voice_id: 'v-3', category: 'premade' },
      { name: 'nobody', category: 'premade' },
      7,
    ]
    t.strictSame(elevenlabsVoices.read(answerOf(200, { voices })), [
      { id: 'v-1', name: 'George' },
      { id: 'v-3', name: 'v-3' },
    ])
    t.equal(elevenlabsVoices.read(answerOf(500, {})), null)
    t.equal(elevenlabsVoices.read(answerOf(200, 'x')), null)
  })
})
