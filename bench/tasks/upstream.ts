import { App, type HttpResponse, type us_socket, us_socket_local_port } from 'uWebSockets.js'
import { pollDelayMs, TASK_RULES } from '../../schemas/tasks/task.ts'
import { Random } from '../harness/random.ts'
import type { Counted, TaskResult, ToUpstream } from './upstream-messages.ts'

/**
 * The process of the task upstream. It has the task contract (docs/upstream-task.md), accepts every task, and ends them on
 * the bench's command. It computes when each poll is due from its previous answer and `pollDelayMs`. Sends `{port}` to its
 * parent when it listens, and ends with it.
 */

interface Work {
  submits: number
  acceptedAt: number
  /** When the next poll is due. */
  dueAt: number
  endsAt: number
  seenAt: number
}

const RULES = TASK_RULES.video
/** The fewest bytes that are recognized as a film. */
const FILM = Buffer.concat([
  Buffer.from('\0\0\0\x18ftypmp42\0\0\0\0mp42isom', 'latin1'),
  Buffer.alloc(4_000, 7),
])
const SECONDS = 5

const works = new Map<string, Work>()
let counted: { polls: number; latenessMs: number[] } | null = null
let origin = ''

const json = (res: HttpResponse, body: object): void => {
  res.cork(() => res.writeHeader('content-type', 'application/json').end(JSON.stringify(body)))
}

const next = (work: Work, now: number): number => now + pollDelayMs(RULES, now - work.acceptedAt, 0)

const submit = (res: HttpResponse, body: string): void => {
  const { reference } = JSON.parse(body) as { reference: string }
  const now = Date.now()
  const work = works.get(reference) ?? {
    submits: 0,
    acceptedAt: now,
    dueAt: 0,
    endsAt: Number.POSITIVE_INFINITY,
    seenAt: 0,
  }
  work.submits += 1
  work.dueAt = next(work, now)
  works.set(reference, work)
  json(res, { id: reference, state: 'running' })
}

const poll = (res: HttpResponse, id: string): void => {
  const work = works.get(id)
  if (work === undefined) {
    res.writeStatus('404 Not Found').end('{"error":{"code":"not_found","message":"There is no such task."}}')
    return
  }
  const now = Date.now()
  if (counted !== null) {
    counted.polls += 1
    counted.latenessMs.push(Math.max(0, now - work.dueAt))
  }
  work.dueAt = next(work, now)
  if (now < work.endsAt) return json(res, { id, state: 'running' })
  if (work.seenAt === 0) work.seenAt = now
  json(res, { id, state: 'succeeded', result: { video_url: `${origin}/film.mp4`, duration_sec: SECONDS } })
}

const receive = (res: HttpResponse): void => {
  let body = ''
  res.onAborted(() => {})
  res.onData((piece, isLast) => {
    body += Buffer.from(piece).toString()
    if (isLast) submit(res, body)
  })
}

/** Distributes the ends evenly over the time, in random order. */
const endAll = (spreadMs: number, seed: number): void => {
  const now = Date.now()
  const order = new Random(seed).shuffle(works.values())
  order.forEach((work, i) => {
    work.endsAt = now + Math.round((spreadMs * (i + 1)) / order.length)
  })
}

const taskResults = (): TaskResult[] =>
  [...works].map(([reference, { submits, endsAt, seenAt }]) => ({
    reference,
    submits,
    endedAt: endsAt,
    seenAt,
  }))

process.on('message', (message: ToUpstream) => {
  switch (message.type) {
    case 'count':
      counted = { polls: 0, latenessMs: [] }
      break
    case 'counted':
      process.send!(counted satisfies Counted | null)
      counted = null
      break
    case 'end':
      endAll(message.spreadMs, message.seed)
      break
    case 'results':
      process.send!(taskResults())
  }
})

App()
  .post('/tasks', receive)
  .get('/tasks/:id', (res, req) => poll(res, req.getParameter(0) ?? ''))
  .get('/film.mp4', (res) => {
    res.cork(() => res.writeHeader('content-type', 'video/mp4').end(FILM))
  })
  .listen('127.0.0.1', 0, (socket) => {
    if (!socket) throw new Error('the upstream of the bench found no port')
    const port = us_socket_local_port(socket as unknown as us_socket) // A listen socket is a socket; the types omit it.
    origin = `http://127.0.0.1:${port}`
    process.send!({ port })
  })
process.once('disconnect', () => process.exit(0))
