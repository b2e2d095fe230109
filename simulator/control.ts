/** The control interface, `/simulator/…`, which shows what the provider has received. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { type CallLog, toView } from './calls.ts'
import { controlPayments } from './payments/control.ts'
import { readBody } from './requests.ts'
import { readState, type Submit, type Task, type TaskState, type TaskStore } from './tasks/task-book.ts'
import type { World } from './world.ts'

const KEPT_REQUEST = /^\/simulator\/calls\/(\d{1,15})\/request$/
const TASK_END = /^\/simulator\/tasks\/([A-Za-z0-9_-]{1,100})\/end$/

/** The request's path and query. */
export type Target = { readonly path: string; readonly query: URLSearchParams }

type Observed = {
  readonly calls: CallLog
  readonly world: World
  /** Runs when the calls are cleared. */
  readonly onClear: () => void
}

export function isControlPath(path: string): boolean {
  return path.startsWith('/simulator/')
}

/** Answers one control request. */
export function answerControl(
  request: IncomingMessage,
  response: ServerResponse,
  target: Target,
  observed: Observed,
): void {
  if (target.path.startsWith('/simulator/payments')) {
    void answerPayments(request, response, target, observed)
    return
  }
  const route = `${request.method} ${target.path}`
  const { status, value } = answerTo(route, target, observed)
  request.resume()
  if (value === null) response.writeHead(status).end()
  else send(response, status, value)
}

async function answerPayments(
  request: IncomingMessage,
  response: ServerResponse,
  { path, query }: Target,
  { world }: Observed,
): Promise<void> {
  try {
    const body = (await readBody(request)).toString()
    const { method = '' } = request
    const answer = await controlPayments(world.payments, { method, path, query, body })
    if (answer === null) send(response, 404, { error: `There is no ${method} ${path}.` })
    else send(response, 200, answer)
  } catch (error) {
    send(response, 400, { error: (error as Error).message })
  }
}

type ControlAnswer = { readonly status: number; readonly value: unknown }

const found = (value: unknown): ControlAnswer => ({ status: 200, value })
const missing = (error: string): ControlAnswer => ({ status: 404, value: { error } })
const DONE: ControlAnswer = { status: 204, value: null }

function answerTo(
  route: string,
  { path, query }: Target,
  { calls, world, onClear }: Observed,
): ControlAnswer {
  switch (route) {
    case 'GET /simulator/calls':
      return found(calls.list(query.get('request_id')).map(toView))
    case 'DELETE /simulator/calls':
      calls.clear()
      onClear()
      return DONE
    case 'GET /simulator/stats':
      return found(calls.stats())
    case 'GET /simulator/tasks':
      return found(taskViews(world.tasks, query))
    case 'GET /simulator/submits':
      return found(submitViews(world.tasks, query))
    case 'DELETE /simulator/tasks':
      world.tasks.clear()
      return DONE
  }
  const kept = route.startsWith('GET ') ? KEPT_REQUEST.exec(path) : null
  if (kept !== null) {
    const view = calls.request(Number(kept[1]))
    return view === null ? missing('This request is not, or no longer, kept.') : found(view)
  }
  const ended = route.startsWith('POST ') ? TASK_END.exec(path) : null
  const task = ended === null ? null : endTask(world, ended[1] as string, query.get('state'))
  return task === null ? missing(`There is no ${route}.`) : found(task)
}

/** Ends an open task now, as `succeeded` unless another state is named; null if there is none. */
function endTask({ tasks }: World, id: string, state: string | null): TaskView | null {
  const task = tasks.tasks().find((one) => one.id === id)
  if (task === undefined) return null
  tasks.end(task, state === 'failed' || state === 'expired' || state === 'cancelled' ? state : 'succeeded')
  return viewOfTask(task)
}

function send(response: ServerResponse, status: number, value: unknown): void {
  const body = JSON.stringify(value)
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  })
  response.end(body)
}

/** Times in RFC 3339. */
export type TaskView = {
  id: string
  dialect: string
  kind: string
  model: string
  reference: string | null
  state: TaskState
  created_at: string
  /** When it ended; null while it is open. */
  ended_at: string | null
  polls: number
  cancels: number
}

export type SubmitView = {
  at: string
  dialect: string
  model: string
  reference: string | null
  /** Null if no task was accepted. */
  task_id: string | null
}

function viewOfTask(task: Task): TaskView {
  const { dialect, model, reference, atMs } = task.submit
  const isOver = Date.now() >= task.endsAtMs
  return {
    ...{ id: task.id, dialect, kind: task.kind, model, reference, state: readState(task) },
    created_at: new Date(atMs).toISOString(),
    ended_at: isOver ? new Date(task.endsAtMs).toISOString() : null,
    ...{ polls: task.polls, cancels: task.cancels },
  }
}

/** Lists tasks, oldest first; the query may name an `id`, a `reference`, a `model` or a `dialect`. */
function taskViews(book: TaskStore, query: URLSearchParams): TaskView[] {
  return book
    .tasks()
    .map(viewOfTask)
    .filter(matching(query, ['id', 'reference', 'model', 'dialect']))
}

/** Lists requests for work, refused ones too, oldest first; the query may name a `reference`, a `model` or a `dialect`. */
function submitViews(book: TaskStore, query: URLSearchParams): SubmitView[] {
  return book
    .submits()
    .map(viewOfSubmit)
    .filter(matching(query, ['reference', 'model', 'dialect']))
}

function viewOfSubmit({ atMs, dialect, model, reference, taskId }: Submit): SubmitView {
  return { at: new Date(atMs).toISOString(), dialect, model, reference, task_id: taskId }
}

function matching<Field extends string>(query: URLSearchParams, fields: readonly Field[]) {
  const wanted = fields.filter((field) => query.has(field))
  return (view: Readonly<Record<Field, string | null>>): boolean =>
    wanted.every((field) => view[field] === query.get(field))
}
