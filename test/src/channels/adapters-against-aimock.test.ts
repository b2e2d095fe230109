/** The adapters' requests as somebody else's imitation of the vendors takes them, and its answers. */

import { readFileSync } from 'node:fs'
import { LLMock } from '@copilotkit/aimock'
import t from 'tap'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import { mediaAdapterOf } from '../../../src/channels/media/registry.ts'
import { arkVideo } from '../../../src/channels/providers/ark/video.ts'
import { openaiImages } from '../../../src/channels/providers/openai/images.ts'
import { openaiSpeech } from '../../../src/channels/providers/openai/speech.ts'
import { channelOf, followOf, pollOf, producedIn, sent, stored, submitOf } from './support.ts'

const elevenlabs = mediaAdapterOf('elevenlabs')!

const fixture = (name: string) => readFileSync(new URL(`../../fixtures/media/${name}`, import.meta.url))
const png = fixture('picture.png')
const mp3 = fixture('plain.mp3')
const VIDEO_URL = 'https://ark-content.example/1.mp4'

const mock = new LLMock({
  port: 0,
  logLevel: 'silent',
  bytePlusVideo: { pollsBeforeInProgress: 1, pollsBeforeCompleted: 2 },
})
mock.onImage('a loaf', {
  images: [{ b64Json: png.toString('base64') }, { url: 'https://cdn.example/2.png' }],
})
mock.onElevenLabsTTS('Good morning', { audio: mp3.toString('base64'), format: 'mp3' })
mock.onSpeech('Good evening', { audio: mp3.toString('base64'), format: 'mp3' })
const finished = {
  id: 'cgt-1',
  model: 'seedance',
  status: 'succeeded',
  content: { video_url: VIDEO_URL },
  usage: { completion_tokens: 108900, total_tokens: 108900 },
  created_at: 1763712000,
  duration: 5,
  framespersecond: 24,
}
mock.on({ endpoint: 'video', userMessage: 'the dough rises' }, { json: finished })
const moderated = {
  ...finished,
  status: 'failed',
  content: undefined,
  error: { code: 'OutputVideoSensitiveContentDetected', message: 'The video may be sensitive.' },
}
mock.on({ endpoint: 'video', userMessage: 'something rude' }, { json: moderated })

t.before(() => mock.start())
t.teardown(() => mock.stop())

const channelAt = (protocol: ChannelEntry['protocol'], path: string) =>
  channelOf(protocol, `${mock.url}${path}`)

t.test('images are generated', async (t) => {
  const submit = submitOf({ work: 'image', prompt: 'a loaf', n: 2, size: '1024x1024' }, 'gpt-image-1')
  const request = openaiImages.submit(channelAt('openai-images', '/v1'), submit)
  const { result, inline } = producedIn(openaiImages.readSubmit(await sent(request), submit))
  t.match(result.files, [{ width: 40, height: 24 }, { upstream_url: 'https://cdn.example/2.png' }])
  t.strictSame(
    inline.map(({ file, mediaType }) => [file, mediaType]),
    [[0, 'image/png']],
  )
  t.ok(inline[0]?.bytes.equals(png))
})

t.test('images are edited', async (t) => {
  const images = [stored('a.png', 'image/png'), stored('b.png', 'image/png')]
  const job = { work: 'image_edit', prompt: 'a loaf', n: 1, images, mask: stored('m.png', 'image/png') }
  const submit = submitOf(job, 'gpt-image-1')
  const request = openaiImages.submit(channelAt('openai-images', '/v1'), submit)
  t.equal(producedIn(openaiImages.readSubmit(await sent(request), submit)).result.files.length, 2)
})

t.test('a refusal of images is one', async (t) => {
  const submit = submitOf({ work: 'image', prompt: 'nothing known', n: 1 }, 'gpt-image-1')
  const request = openaiImages.submit(channelAt('openai-images', '/v1'), submit)
  t.match(openaiImages.readSubmit(await sent(request), submit), {
    type: 'refused',
    status: 404,
    message: 'No fixture matched',
  })
})

for (const [words, code] of [
  ['the dough rises', null],
  ['something rude', 'content_policy'],
] as const) {
  t.test(`a video goes from queued to its end: ${code ?? 'succeeded'}`, async (t) => {
    const channel = channelAt('ark-video', '/api/v3')
    const job = { work: 'video', content: [{ type: 'text', text: words }], duration: 5 }
    const submit = submitOf(job, 'seedance')
    const outcome = arkVideo.readSubmit(await sent(arkVideo.submit(channel, submit)), submit)
    if (outcome.type !== 'accepted') throw new Error(outcome.type)
    const poll = pollOf(job, outcome.upstreamId)
    const { poll: ask, readPoll } = followOf(arkVideo)
    t.strictSame(readPoll(await sent(ask(channel, poll)), poll), {
      type: 'running',
      upstreamState: 'running',
    })
    const end = readPoll(await sent(ask(channel, poll)), poll)
    if (code === null) {
      const { result } = producedIn(end)
      t.match(result, { seconds: 5, files: [{ role: 'video', upstream_url: VIDEO_URL }] })
    } else t.match(end, { type: 'failed', code, message: 'The video may be sensitive.' })
    const strange = pollOf(job, 'cgt-unknown')
    t.equal(readPoll(await sent(ask(channel, strange)), strange).type, 'error')
  })
}

for (const [adapter, protocol, path, input] of [
  [elevenlabs, 'elevenlabs', '', 'Good morning'],
  [openaiSpeech, 'openai-speech', '/v1', 'Good evening'],
] as const) {
  t.test(`${protocol} speaks`, async (t) => {
    const submit = submitOf({ work: 'speech', input, speed: 1 }, 'model-1')
    const outcome = adapter.readSubmit(await sent(adapter.submit(channelAt(protocol, path), submit)), submit)
    const { result, inline } = producedIn(outcome)
    t.ok(inline[0]?.bytes.equals(mp3))
    t.equal(inline[0]?.mediaType, 'audio/mpeg')
    t.ok((result.seconds ?? 0) >= 1.5)
  })
}
