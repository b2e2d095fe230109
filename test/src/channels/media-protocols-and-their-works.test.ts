import t from 'tap'
import { CHAT_PROTOCOLS } from '../../../schemas/config/catalog.ts'
import { mediaFailureStatus } from '../../../src/channels/media/failure.ts'
import { MEDIA_CHANNELS, mediaAdapterOf, presetsOf, worksOf } from '../../../src/channels/media/registry.ts'
import {
  clipCategoriesRequest,
  clipTemplatesRequest,
  readClipCategories,
  readClipTemplates,
  taskPresets,
} from '../../../src/channels/media/task/catalog.ts'
import { answerOf, channelOf, headerOf, submitOf } from './support.ts'

const channel = channelOf('task', 'https://studio.example')

t.test('no protocol of chat has an adapter of media', async (t) => {
  for (const protocol of [...CHAT_PROTOCOLS, 'toString', '']) {
    t.equal(mediaAdapterOf(protocol), null)
    t.strictSame(worksOf(protocol), [])
    t.equal(presetsOf(protocol, 'voice'), null)
  }
})

t.test('what each can be asked for', async (t) => {
  const { task, ...others } = MEDIA_CHANNELS
  t.equal(task!.works.length, 13)
  const works = Object.entries(others).map(([protocol, adapter]) => [protocol, adapter.works])
  t.strictSame(Object.fromEntries(works), {
    'openai-images': ['image', 'image_edit'],
    'ark-images': ['image'],
    'ark-video': ['video'],
    'openai-speech': ['speech'],
    elevenlabs: ['speech', 'voice'],
    suno: ['music'],
    fal: ['image', 'image_edit', 'video'],
    replicate: ['image', 'image_edit', 'video'],
    kling: ['image', 'video'],
    veo: ['video'],
    'minimax-images': ['image'],
    'minimax-video': ['video'],
    'minimax-speech': ['speech'],
    'minimax-music': ['music'],
    dashscope: ['image', 'image_edit', 'video'],
    runway: ['image', 'image_edit', 'video'],
  })
})

t.test('work that an adapter does not do is a fault of the caller', async (t) => {
  for (const adapter of Object.values(MEDIA_CHANNELS)) {
    if (adapter.works.includes('transcript')) continue
    const submit = submitOf({ work: 'transcript', url: 'x' })
    t.throws(() => adapter.submit(channel, submit), { message: 'no request for transcript' })
    t.strictSame(adapter.takesIn?.(submit.job) ?? [], [])
  }
})

t.test('where presets are', async (t) => {
  const known = presetsOf('openai-speech', 'voice')
  t.ok(known?.type === 'known' && known.presets.some(({ id }) => id === 'alloy'))
  t.equal(presetsOf('openai-speech', 'avatar'), null)
  t.equal(presetsOf('elevenlabs', 'voice')?.type, 'asked')
  t.equal(presetsOf('task', 'avatar')?.type, 'asked')
  t.equal(presetsOf('task', 'voice')?.type, 'asked')
  t.equal(presetsOf('suno', 'voice'), null)
})

t.test('presets and templates are asked for with the key', async (t) => {
  const requests = [
    [taskPresets('voice').request(channel), '/presets?kind=voice'],
    [clipTemplatesRequest(channel, null), '/clip-templates'],
    [clipTemplatesRequest(channel, 'c&d'), '/clip-templates?cate_id=c%26d'],
    [clipCategoriesRequest(channel), '/clip-templates/categories'],
  ] as const
  for (const [request, path] of requests) {
    t.match(request, { method: 'GET', url: `https://studio.example${path}`, body: null })
    t.equal(headerOf(request, 'authorization'), 'Bearer k-1')
  }
})

t.test('items without an id are left out, empty fields are filled, categories are sorted', async (t) => {
  const presets = [{ id: 'a', name: 'Ada' }, { id: 7 }, { name: 'nobody' }, null]
  t.strictSame(taskPresets('avatar').read(answerOf(200, { presets })), [
    { id: 'a', name: 'Ada' },
    { id: '7', name: '7' },
  ])
  t.strictSame(readClipTemplates(answerOf(200, { list: [{ style_id: 's', name: 'Bold', more: 1 }, {}] })), [
    { style_id: 's', name: 'Bold', cover_url: '', demo_url: '', cate_name: '', scene: '' },
  ])
  const list = [
    { cate_id: 'b', cate_name: 'B', sort: 2 },
    { cate_id: 'a', cate_name: 'A', sort: 1 },
  ]
  t.strictSame(readClipCategories(answerOf(200, { list })), list.toReversed())
})

t.test('a provider without the request has none; one that fails did not say', async (t) => {
  for (const status of [404, 501]) t.strictSame(readClipTemplates(answerOf(status, '')), [])
  for (const [status, body] of [
    [200, 'x'],
    [200, {}],
    [200, []],
    [500, { list: [] }],
  ] as const) {
    t.equal(readClipTemplates(answerOf(status, body)), null, JSON.stringify(body))
  }
})

t.test('a code that nobody knows counts as a failed generation', async (t) => {
  t.equal(mediaFailureStatus('no_speech'), 400)
  t.equal(mediaFailureStatus('quota_exhausted'), 503)
  t.equal(mediaFailureStatus('timeout'), 504)
  t.equal(mediaFailureStatus('toString'), 502)
})
