/** MiniMax: failures have status 200 and a code in `base_resp`; a finished video has a file id, and a separate endpoint returns its link. */
import {
  type Call,
  type Desk,
  type Dialect,
  fateOf,
  type Job,
  KEY,
  type Reply,
  reply,
  SOUND,
} from './provider.ts'

const base = (status_code: number, status_msg: string) => ({ base_resp: { status_code, status_msg } })
const OK = base(0, 'success')

const STATUS = { queued: 'Queueing', running: 'Processing', done: 'Success', strange: 'Paused' } as const

function draw(call: Call, desk: Desk): Reply {
  const job = desk.take(call, call.body.prompt)
  const image_urls = Array.from({ length: call.body.n ?? 1 }, (_, index) => desk.file(job, 'png', index + 1))
  const kept = fateOf(job.prompt) === 'broken' ? [] : image_urls.slice(0, 2)
  const metadata = { success_count: kept.length, failed_count: image_urls.length - kept.length }
  return reply(200, { id: job.id, data: { image_urls: kept }, metadata, ...OK })
}

function speak(call: Call, desk: Desk): Reply {
  const { body } = call
  if (typeof body.voice_setting?.voice_id !== 'string')
    return reply(200, base(2013, 'invalid params, voice_id'))
  desk.take(call, body.text)
  const wide = body.text.match(/\p{Script=Han}/gu) ?? []
  const usage_characters = body.text.length + wide.length
  const extra_info = { audio_length: 1500, audio_format: 'mp3', usage_characters }
  return reply(200, { data: { audio: SOUND.toString('hex'), status: 2 }, extra_info, trace_id: 't', ...OK })
}

function sing(call: Call, desk: Desk): Reply {
  const { prompt = '', lyrics, is_instrumental, lyrics_optimizer } = call.body
  if (lyrics === undefined && !is_instrumental && !lyrics_optimizer)
    return reply(200, base(2013, 'invalid params, lyrics'))
  const job = desk.take(call, prompt)
  const audio = fateOf(prompt) === 'broken' ? '' : desk.file(job, 'mp3')
  const extra_info = { music_duration: 25_364, music_sample_rate: 44_100 }
  return reply(200, { data: { audio, status: 2 }, extra_info, trace_id: `trace-${job.id}`, ...OK })
}

function taskOf(job: Job, desk: Desk): Reply {
  const stage = desk.look(job)
  const status = stage in STATUS ? STATUS[stage as keyof typeof STATUS] : 'Fail'
  if (status === 'Fail') return reply(200, { task_id: job.id, status, ...base(1027, 'output new_sensitive') })
  return reply(200, {
    task_id: job.id,
    status,
    file_id: status === 'Success' ? `file-${job.id}` : '',
    video_width: 1366,
    video_height: 768,
    ...OK,
  })
}

export const minimaxDialect: Dialect = {
  isAuthorized: ({ header }) => header('authorization') === `Bearer ${KEY}`,
  unauthorized: reply(200, base(1004, 'login fail: Please carry the API secret key')),
  busy: reply(200, base(1002, 'rate limit')),
  improper: reply(200, base(1026, 'input new_sensitive')),
  answer(call, desk) {
    const { method, path, query, body } = call
    if (method === 'POST' && path === '/v1/image_generation') return draw(call, desk)
    if (method === 'POST' && path === '/v1/music_generation') return sing(call, desk)
    if (method === 'POST' && path === '/v1/t2a_v2') return speak(call, desk)
    if (method === 'POST' && path === '/v1/video_generation') {
      if (typeof body.duration === 'string') return reply(200, base(2013, 'invalid params, duration'))
      return reply(200, { task_id: desk.take(call, body.prompt).id, ...OK })
    }
    if (path === '/v1/query/video_generation') {
      const job = desk.find(query.get('task_id'))
      return job === undefined ? reply(200, base(2013, 'invalid params, task_id')) : taskOf(job, desk)
    }
    const job = desk.find(query.get('file_id')?.replace('file-', ''))
    if (path !== '/v1/files/retrieve' || job === undefined)
      return reply(200, base(2013, 'invalid params, file_id'))
    const file = {
      file_id: `file-${job.id}`,
      bytes: 512,
      filename: 'output.mp4',
      purpose: 'video_generation',
      download_url: desk.file(job, 'mp4'),
    }
    return reply(200, { file, ...OK })
  },
}
