/** Lists of presets and templates from channels: cached, and shown on while their upstream is silent. */

import t from 'tap'
import { channelLists, mergeLists } from '../../../pipelines/media/channel-lists.ts'
import { resolveMediaResource } from '../../../pipelines/media/select-voice-or-avatar.ts'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { openMediaCalls } from '../../../src/server/channels/media-calls.ts'
import { UpstreamClient } from '../../../src/upstream/client.ts'
import { authorizerOf } from '../../support/channel-authorizer.ts'
import { sendJson, serveHttp } from '../../support/http-server.ts'
import { channelAt, resultOf, taskOf } from './support.ts'

t.test('channel lists are cached for a minute', async (t) => {
  // Lists of presets and templates: asked for once a minute, shown on while their upstream is silent.
  const MINUTE_MS = 60_000

  /** An upstream that answers what the test says. */
  async function startLister() {
    const url = await serveHttp(t, (request, response) => {
      lister.asked.push(request.url ?? '')
      sendJson(response, lister.answer.status, lister.answer.body)
    })
    const lister = { url, asked: [] as string[], answer: { status: 200, body: {} as object } }
    return lister
  }

  const upstream = new UpstreamClient()
  t.teardown(() => upstream.close())
  const noFile = () => Promise.reject(new Error('nothing is sent along'))
  const calls = openMediaCalls(upstream, { open: noFile }, authorizerOf)

  t.test('one question a minute, however many ask', async (t) => {
    const lister = await startLister()
    let now = 0
    const lists = channelLists({ calls, now: () => now })
    const channel = channelAt(lister.url)
    lister.answer.body = { presets: [{ id: 'mei', name: 'Mei' }] }
    const [first, second] = await Promise.all([
      lists.presets(channel, 'avatar'),
      lists.presets(channel, 'avatar'),
    ])
    t.same(first, [{ id: 'mei', name: 'Mei' }])
    t.equal(first, second)
    now = MINUTE_MS - 1
    await lists.presets(channel, 'avatar')
    t.same(lister.asked, ['/presets?kind=avatar'])
    await lists.presets(channel, 'voice')
    t.equal(lister.asked.length, 2, 'another list is another question')
    await lists.presets({ ...channel, base_url: `${lister.url}/moved` }, 'avatar')
    t.equal(lister.asked.at(-1), '/moved/presets?kind=avatar', 'so is the same channel elsewhere')
    now = MINUTE_MS
    lister.answer.body = { presets: [] }
    t.same(await lists.presets(channel, 'avatar'), [])
    t.equal(lister.asked.length, 4)
  })

  t.test('an upstream that does not answer', async (t) => {
    const lister = await startLister()
    let now = 0
    const lists = channelLists({ calls, now: () => now })
    const channel = channelAt(lister.url)
    const list = [
      { style_id: 'bold', name: 'Bold', cover_url: '', demo_url: '', cate_name: 'Talk', scene: '' },
    ]
    lister.answer = { status: 500, body: {} }
    await t.rejects(lists.clipTemplates(channel, null), { code: 'upstream_error', status: 502 })
    lister.answer = { status: 200, body: { list } }
    t.same(await lists.clipTemplates(channel, null), list, 'a failure is not kept')
    now = MINUTE_MS
    lister.answer = { status: 500, body: {} }
    t.same(await lists.clipTemplates(channel, null), list, 'the last list is shown on')
    lister.answer = { status: 404, body: {} }
    t.same(await lists.clipTemplates(channel, null), [], 'one that has no such list has said so')
    const nowhere = channelAt('http://127.0.0.1:1')
    await t.rejects(lists.clipCategories(nowhere), { code: 'upstream_unreachable', status: 502 })
    t.same(
      await lists.presets(channelAt(lister.url, { protocol: 'suno' }), 'voice'),
      [],
      'it has none at all',
    )
    await lists.clipTemplates(channel, 'a b&c')
    t.equal(lister.asked.at(-1), '/clip-templates?cate_id=a%20b%26c')
  })

  t.test('what several channels list stands there once', async (t) => {
    const channels = ['one', 'two', 'mute'].map((id) => channelAt(`http://${id}.test`, { id }))
    const ask = async ({ id }: ChannelEntry) => {
      if (id === 'mute') throw new Error('no answer')
      return [
        { id: 'shared', by: id },
        { id, by: id },
      ]
    }
    const listed = await mergeLists(channels, ask, ({ id }) => id)
    t.same(listed, [
      { id: 'shared', by: 'one' },
      { id: 'one', by: 'one' },
      { id: 'two', by: 'two' },
    ])
    t.same(await mergeLists([], ask, ({ id }) => id), [])
    await t.rejects(
      mergeLists(channels.slice(2), ask, ({ id }) => id),
      { message: 'no answer' },
    )
  })

  t.test('avatars and voices are used where they are', async (t) => {
    const channels = ['here', 'there', 'mute'].map((id) => channelAt(`http://${id}.test`, { id }))
    const routes = channels.map((channel) => ({
      channel,
      upstreamModel: 'm',
      protocol: 'task' as const,
      cost: null,
      isTranslated: false,
    }))
    const known = { account: { id: 'acc_a' } }
    const caller = { known } as unknown as Parameters<typeof resolveMediaResource>[1]
    const use = async (
      id: string,
      { task = null, among = routes }: { task?: Task | null; among?: typeof routes } = {},
    ) => {
      const tasks = { find: async () => task, list: async () => ({ tasks: [], hasMore: false }) }
      const presets = async ({ id: at }: ChannelEntry) => {
        if (at === 'mute') throw new Error('no answer')
        return at === 'there' ? [{ id: 'mei', name: 'Mei' }] : []
      }
      const found = await resolveMediaResource({ tasks, lists: { presets } }, caller, 'avatar', {
        field: 'avatar',
        id,
        routes: among,
      })
      return { id: found.upstreamId, at: found.routes.map(({ channel }) => channel.id) }
    }
    t.same(await use('mei'), { id: 'mei', at: ['there'] }, 'a preset')
    const avatar = taskOf({
      kind: 'avatar',
      channelId: 'here',
      state: 'succeeded',
      result: resultOf({ made_id: 'face-1' }),
    })
    t.same(await use('ava_1', { task: avatar }), { id: 'face-1', at: ['here'] }, 'one of its own')
    await t.rejects(use('ava_1', { task: { ...avatar, state: 'running', result: null } }), {
      code: 'invalid_request',
      message: /'avatar'.*not ready/,
    })
    await t.rejects(use('ava_1', { task: { ...avatar, channelId: 'gone' } }), {
      code: 'no_channel_available',
    })
    await t.rejects(use('nobody', { among: routes.slice(0, 2) }), {
      code: 'invalid_request',
      message: /no such avatar/,
    })
    await t.rejects(use('nobody'), { message: 'no answer' }, 'a channel that is silent may have it')
  })
})
