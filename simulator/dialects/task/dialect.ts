/** The task dialect: the gateway's own contract for media, docs/upstream-task.md, below `/task`. */

import { hash } from 'node:crypto'
import { findNamedModel, requireBearer } from '../../access.ts'
import {
  type Dialect,
  type FailureReason,
  failuresAs,
  jsonAnswer,
  type OpenedRequest,
  parseJsonObject,
  type ReceivedRequest,
  SimulatedFailure,
  type WholeAnswer,
} from '../../dialect.ts'
import type { Directives } from '../../directives/grammar.ts'
import { Delivery } from '../../media/delivery.ts'
import { makeTaskId, readState, type Task, type TaskState } from '../../tasks/task-book.ts'
import { acceptWork, directivesInTexts, openPoll } from '../../tasks/work.ts'
import { PRESET_VOICES } from '../../world.ts'
import {
  isTemplate,
  openCategories,
  openPresets,
  openTemplates,
  PRESET_AVATARS,
  readTaskRequest,
  type TaskRequest,
} from './inputs.ts'
import { makeResult } from './results.ts'

const NAME = 'task'
const NO_KEY = 'The key is not known.'
const MADE = { recognition: /^asr-[\w-]+$/, avatar: /^face-[\w-]+$/, voice: /^voice-[\w-]+$/ } as const

export const task: Dialect = {
  name: NAME,
  endpoints: [
    { method: 'POST', path: /^\/task\/tasks$/, open: keyed(openSubmit) },
    { method: 'GET', path: /^\/task\/tasks$/, open: keyed(openFind) },
    {
      method: 'GET',
      path: /^\/task\/tasks\/([^/]+)$/,
      open: keyed((request) => openPoll(request, NAME, request.path[1] as string)),
    },
    { method: 'POST', path: /^\/task\/tasks\/([^/]+)\/cancel$/, open: keyed(openCancel) },
    { method: 'GET', path: /^\/task\/presets$/, open: keyed(openPresets) },
    { method: 'GET', path: /^\/task\/clip-templates$/, open: keyed(openTemplates) },
    { method: 'GET', path: /^\/task\/clip-templates\/categories$/, open: keyed(openCategories) },
  ],
  failure: failuresAs(errorBody),
}

type Open = (request: ReceivedRequest) => OpenedRequest

function keyed(open: Open): Open {
  return (request) => {
    requireBearer(request.headers, NO_KEY)
    return open(request)
  }
}

function openSubmit(request: ReceivedRequest): OpenedRequest {
  const asked = readTaskRequest(parseJsonObject(request.body))
  const { directives } = findNamedModel(asked.model, (model) => `There is no model "${model}".`)
  return {
    model: asked.model,
    directives: [directives, directivesInTexts(asked.input)],
    answer: (merged) => submit(request, asked, merged),
  }
}

function submit({ world, origin }: ReceivedRequest, asked: TaskRequest, directives: Directives): WholeAnswer {
  const { reference, kind, model } = asked
  const words = hash('sha1', JSON.stringify([kind, model, asked.input]))
  const known = world.tasks.findSubmit(NAME, reference)
  const taken = known?.taskId ? world.tasks.find(NAME, known.taskId) : null
  if (taken !== null) {
    world.tasks.recordSubmit({ dialect: NAME, model, reference, directives })
    return repeated(taken, words)
  }
  if (world.tasks.wasDenied(reference))
    throw new SimulatedFailure(409, 'invalid_request', `Nobody was to take on "${reference}" any more.`)
  refuseUnknown(asked)
  const tell = (task: Task) => wire(task, () => result(task))
  const result = (task: Task) => {
    const options = { files: world.files, origin, id: task.id, directives, words }
    return makeResult(asked, { id: task.id, delivery: new Delivery(options), directives })
  }
  const work = { world, dialect: NAME, model, reference, directives, kind, id: `t-${makeTaskId()}`, tell }
  return acceptWork({ ...work, statusOfCode, words }, (task) => jsonAnswer(200, tell(task)))
}

/** Accepts a reference once: a second submit gets the existing task. */
function repeated(taken: Task, words: string): WholeAnswer {
  if (taken.words !== words) {
    throw refusal('reference_reuse', 'A task has this reference and other input.')
  }
  return jsonAnswer(200, taken.tell(taken))
}

/** Accepts ids of earlier runs of the provider too, by their form. */
function refuseUnknown(asked: TaskRequest): void {
  if (asked.kind === 'clip_compose') {
    const { video_style_id: style, asr_id: recognition } = asked.input
    if (style !== undefined && !isTemplate(style))
      throw refusal('template_withdrawn', 'The template was withdrawn: choose another.')
    if (!MADE.recognition.test(recognition))
      throw refusal('asr_expired', 'The recognition is no longer kept: recognise the subtitles again.')
  }
  if (asked.kind === 'avatar_video' && !isAvatar(asked.input.avatar))
    throw refusal('invalid_input', 'There is no such avatar.')
  if ((asked.kind === 'avatar_video' || asked.kind === 'speech') && !isVoice(asked.input.voice))
    throw refusal('invalid_input', 'There is no such voice.')
}

function isAvatar(id: string): boolean {
  return MADE.avatar.test(id) || PRESET_AVATARS.some((preset) => preset.id === id)
}

function isVoice(id: string | undefined): boolean {
  return id === undefined || MADE.voice.test(id) || PRESET_VOICES.some((preset) => preset.id === id)
}

function refusal(code: string, message: string): SimulatedFailure {
  return new SimulatedFailure(statusOfCode(code), 'invalid_request', message, { code })
}

function openFind({ world, query }: ReceivedRequest): OpenedRequest {
  const reference = query.get('reference') ?? ''
  const submitted = world.tasks.findSubmit(NAME, reference)
  const found = submitted?.taskId ? world.tasks.find(NAME, submitted.taskId) : null
  return {
    model: submitted?.model ?? null,
    answer: ({ fault }) => {
      if (found !== null) return jsonAnswer(200, found.tell(found))
      if (fault === undefined) world.tasks.forgetSubmit(reference)
      throw new SimulatedFailure(404, 'not_found', 'There is no task with this reference.')
    },
  }
}

function openCancel({ world, path }: ReceivedRequest): OpenedRequest {
  const found = world.tasks.find(NAME, path[1] as string)
  if (found === null) throw new SimulatedFailure(404, 'not_found', 'There is no such task.')
  return {
    model: found.submit.model,
    answer: () => {
      found.cancels += 1
      if (readState(found) === 'queued') world.tasks.end(found, 'cancelled')
      if (readState(found) === 'cancelled') return jsonAnswer(200, found.tell(found))
      throw refusal('not_cancellable', 'The task is running or over.')
    },
  }
}

const STATES: Readonly<Record<TaskState, string>> = {
  queued: 'queued',
  running: 'running',
  succeeded: 'succeeded',
  failed: 'failed',
  moderated: 'failed',
  expired: 'expired',
  cancelled: 'cancelled',
  unknown: 'resting',
}

function wire(task: Task, result: () => object): object {
  const state = readState(task)
  const { code } = task.submit.directives
  const failed = { code: code ?? 'generation_failed', message: 'The work failed: simulated.' }
  const moderated = { code: 'content_policy', message: 'What came of it breaks the rules: simulated.' }
  return {
    id: task.id,
    state: STATES[state],
    ...(state === 'succeeded' ? { result: result() } : {}),
    ...(state === 'failed' ? { error: failed } : {}),
    ...(state === 'moderated' ? { error: moderated } : {}),
  }
}

const CODES: Readonly<Record<FailureReason, string>> = {
  invalid_request: 'invalid_input',
  invalid_api_key: 'unauthorized',
  model_not_found: 'not_found',
  not_found: 'not_found',
  method_not_allowed: 'not_found',
  request_too_large: 'invalid_input',
  rate_limited: 'rate_limited',
  simulated: 'generation_failed',
}

const STATUSES: Readonly<Record<string, number>> = {
  not_cancellable: 409,
  unauthorized: 401,
  rate_limited: 429,
  quota_exhausted: 503,
  timeout: 504,
  connection_failed: 502,
  generation_failed: 500,
}

function statusOfCode(code: string | undefined): number {
  return STATUSES[code ?? ''] ?? 400
}

function errorBody({ status, reason, code, message }: SimulatedFailure): object {
  const usual = reason === 'simulated' && status === 503 ? 'quota_exhausted' : CODES[reason]
  return { error: { code: code ?? usual, message } }
}
