/** Each adapter asks for sound, and for none, in its provider's field; without either it sends nothing. */
import t from 'tap'
import type { ChannelProtocol } from '../../../schemas/config/catalog.ts'
import { MEDIA_PROTOCOLS, mediaAdapterOf, worksOf } from '../../../src/channels/media/registry.ts'
import { channelOf, jobOf, jsonOf, linked, submitOf } from './support.ts'

const words = { type: 'text', text: 'the dough rises' }
const frame = { type: 'image', file: linked('https://example.com/a.png'), role: 'first_frame' }
const video = { type: 'video', file: linked('https://example.com/a.mp4'), role: null }
const film = { work: 'video', content: [words, frame], duration: 5, resolution: '720p' }

const channel = (protocol: ChannelProtocol, more: object = {}) => ({
  ...channelOf(protocol, 'https://provider.example/v1'),
  ...more,
})

/** Every value of a request by its path. */
function valuesOf(value: unknown, path = ''): Map<string, unknown> {
  if (value === null || typeof value !== 'object') return new Map([[path, value]])
  return new Map(Object.entries(value).flatMap(([name, each]) => [...valuesOf(each, `${path}/${name}`)]))
}

const ASKED: readonly (readonly [ChannelProtocol, object, path: string, on: unknown, off: unknown])[] = [
  ['ark-video', {}, '/generate_audio', true, false],
  ['kling', {}, '/sound', 'on', 'off'],
  ['veo', { provider: 'vertex' }, '/parameters/generateAudio', true, false],
  ['dashscope', {}, '/parameters/audio', true, false],
  ['runway', {}, '/audio', true, false],
  ['fal', {}, '/generate_audio', true, false],
  ['fal', { input_names: { generate_audio: 'with_sound' } }, '/with_sound', true, false],
  ['replicate', {}, '/input/generate_audio', true, false],
  ['task', {}, '/input/generate_audio', true, false],
]

/** Those that cannot be asked. */
const FIXED: readonly (readonly [ChannelProtocol, object, content: readonly object[]])[] = [
  ['veo', {}, [words]],
  ['minimax-video', {}, [words]],
  ['runway', {}, [words, video]],
  ['fal', { input_names: { generate_audio: '' } }, [words]],
  ['replicate', { input_names: { generate_audio: '' } }, [words]],
]

function sent(protocol: ChannelProtocol, more: object, job: object, generate_audio: boolean | null) {
  const adapter = mediaAdapterOf(protocol)!
  return valuesOf(
    jsonOf(adapter.submit(channel(protocol, more), submitOf({ ...job, generate_audio }, 'model-1'))),
  )
}

t.test('sound on, off, or as the provider does by itself', async (t) => {
  for (const [protocol, more, path, on, off] of ASKED) {
    const name = `${protocol} ${JSON.stringify(more)}`
    const unasked = sent(protocol, more, film, null)
    t.notOk(unasked.has(path), name)
    t.strictSame(sent(protocol, more, film, true), new Map([...unasked, [path, on]]), name)
    t.equal(sent(protocol, more, film, false).get(path), off, name)
    t.notOk(mediaAdapterOf(protocol)!.fixesSound?.(channel(protocol, more), jobOf(film)), name)
  }
})

t.test('a request says nothing of it where the provider has no field', async (t) => {
  for (const [protocol, more, content] of FIXED) {
    const job = { ...film, content }
    const unasked = [...sent(protocol, more, job, null)]
    for (const generate_audio of [true, false])
      t.same([...sent(protocol, more, job, generate_audio)], unasked, protocol)
    t.ok(mediaAdapterOf(protocol)!.fixesSound?.(channel(protocol, more), jobOf(job)), protocol)
  }
})

t.test('no adapter of videos is left out', async (t) => {
  const known = new Set([...ASKED, ...FIXED].map(([protocol]) => protocol))
  t.same(
    MEDIA_PROTOCOLS.filter((protocol) => worksOf(protocol).includes('video') && !known.has(protocol)),
    [],
  )
})
