/** The suno dialect: `POST /api/v1/generate` and `GET /api/v1/generate/record-info` in their public shapes. */

import { z } from 'zod'
import { findNamedModel, requireBearer } from '../access.ts'
import { drawTokens, makeSeededRandom } from '../answers/words.ts'
import {
  type Dialect,
  jsonAnswer,
  type OpenedRequest,
  parseJsonObject,
  type ReceivedRequest,
  SimulatedFailure,
  type WholeAnswer,
} from '../dialect.ts'
import type { Directives } from '../directives/grammar.ts'
import { Delivery } from '../media/delivery.ts'
import { toPlayedSeconds } from '../media/samples.ts'
import { readAs } from '../requests.ts'
import { makeTaskId, readProgress, readState, type Task } from '../tasks/task-book.ts'
import { acceptWork, directivesInTexts, openPoll } from '../tasks/work.ts'

const NAME = 'suno'
const NO_KEY = 'You do not have access permissions'
const SONGS = 2
const SONG_SECONDS = 121.2
const TITLE_WORDS = 2
const COVER = { widthPixels: 512, heightPixels: 512 } as const
const MAX_PROMPT_CHARACTERS = 500
const MAX_LYRICS_CHARACTERS = 3_000
const MAX_STYLE_CHARACTERS = 1_000
const MAX_TITLE_CHARACTERS = 80
/** The lyrics are ready before the first song. */
const FIRST_SONG_PROGRESS = 0.5
const FINAL_FAILURES = ['CREATE_TASK_FAILED', 'GENERATE_AUDIO_FAILED', 'SENSITIVE_WORD_ERROR'] as const

export const suno: Dialect = {
  name: NAME,
  endpoints: [
    { method: 'POST', path: /^\/api\/v1\/generate$/, open: openSubmit },
    { method: 'GET', path: /^\/api\/v1\/generate\/record-info$/, open: openQuery },
  ],
  failure: (failure) => jsonAnswer(readHttpStatus(failure), errorBody(failure), failure.headers),
}

const request = z.object({
  model: z.string().min(1),
  customMode: z.boolean(),
  instrumental: z.boolean(),
  prompt: z.string().optional(),
  style: z.string().max(MAX_STYLE_CHARACTERS).optional(),
  title: z.string().max(MAX_TITLE_CHARACTERS).optional(),
  negativeTags: z.string().optional(),
  callBackUrl: z.string().regex(/^https?:\/\//, 'it is no link'),
})

type Asked = z.infer<typeof request>

function openSubmit(received: ReceivedRequest): OpenedRequest {
  requireBearer(received.headers, NO_KEY)
  const asked = readAs(request, parseJsonObject(received.body))
  const { directives } = findNamedModel(asked.model, (model) =>
    refused(`The model ${model} is not supported`),
  )
  checkMode(asked)
  return {
    model: asked.model,
    directives: [directives, directivesInTexts([asked.prompt, asked.style, asked.title])],
    answer: (merged) => submit(received, asked, merged),
  }
}

/** In custom mode, the prompt has the lyrics, and style and title are required. */
function checkMode({ customMode, instrumental, prompt = '', style = '', title = '' }: Asked): void {
  if (customMode && style === '') throw refused('The style is required in custom mode')
  if (customMode && title === '') throw refused('The title is required in custom mode')
  if (prompt === '' && !(customMode && instrumental)) throw refused('Please enter a prompt')
  const limit = customMode ? MAX_LYRICS_CHARACTERS : MAX_PROMPT_CHARACTERS
  if ([...prompt].length <= limit) return
  throw new SimulatedFailure(413, 'request_too_large', `The prompt exceeds ${limit} characters`)
}

function submit({ world, origin }: ReceivedRequest, asked: Asked, directives: Directives): WholeAnswer {
  const words = JSON.stringify(asked)
  const tell = (task: Task) => {
    const options = { files: world.files, origin, id: task.id, directives, words }
    return wire(task, asked, new Delivery(options))
  }
  const task = { id: makeTaskId(), kind: 'music', words, tell }
  const work = { ...task, world, dialect: NAME, model: asked.model, reference: null, directives }
  return acceptWork(work, ({ id }) => jsonAnswer(200, { code: 200, msg: 'success', data: { taskId: id } }))
}

function openQuery(received: ReceivedRequest): OpenedRequest {
  requireBearer(received.headers, NO_KEY)
  return openPoll(received, NAME, received.query.get('taskId') ?? '')
}

function wire(task: Task, asked: Asked, delivery: Delivery): object {
  const status = readStatus(task)
  const isFailed = (FINAL_FAILURES as readonly string[]).includes(status)
  const sung = listSongs(status)
  const sunoData = Array.from({ length: sung }, (_, index) => song(index, task, asked, delivery))
  return {
    code: 200,
    msg: 'success',
    data: {
      taskId: task.id,
      parentMusicId: '',
      param: JSON.stringify(asked),
      response: sung === 0 ? null : { taskId: task.id, sunoData },
      status,
      ...{ type: 'GENERATE', operationType: 'generate' },
      errorCode: isFailed ? 500 : null,
      errorMessage: isFailed ? 'The songs could not be made: simulated.' : null,
    },
  }
}

/** A failed or stuck task has the status that `code` names, such as `CALLBACK_EXCEPTION`. */
function readStatus(task: Task): string {
  const { code, outcome } = task.submit.directives
  switch (readState(task)) {
    case 'queued':
      return 'PENDING'
    case 'running':
      if (outcome === 'stuck') return code ?? 'TEXT_SUCCESS'
      return readProgress(task) < FIRST_SONG_PROGRESS ? 'TEXT_SUCCESS' : 'FIRST_SUCCESS'
    case 'succeeded':
      return 'SUCCESS'
    case 'moderated':
      return 'SENSITIVE_WORD_ERROR'
    case 'unknown':
      return 'ARCHIVED'
    default:
      return code ?? 'GENERATE_AUDIO_FAILED'
  }
}

function listSongs(status: string): number {
  if (status === 'FIRST_SUCCESS') return 1
  return status === 'SUCCESS' || status === 'CALLBACK_EXCEPTION' ? SONGS : 0
}

/** Songs beyond `partial` have a name but no audio. */
function song(index: number, { id, submit }: Task, asked: Asked, delivery: Delivery): object {
  const { directives } = submit
  const seconds = directives.seconds ?? SONG_SECONDS
  const isSung = index < (directives.partial ?? SONGS)
  const audioUrl = isSung ? delivery.sound(index, seconds) : ''
  const lyrics = asked.customMode ? asked.prompt : `[Verse]\n${asked.prompt}`
  return {
    id: `${id}-${index + 1}`,
    audioUrl,
    streamAudioUrl: audioUrl,
    imageUrl: isSung ? delivery.picture(SONGS + index, COVER) : '',
    prompt: asked.instrumental ? '' : lyrics,
    modelName: asked.model,
    title: asked.title ?? drawTokens(makeSeededRandom(delivery.seed(index)), TITLE_WORDS).join(''),
    tags: asked.style ?? 'simulated',
    createTime: submit.atMs,
    duration: isSung && directives.no_seconds !== true ? toPlayedSeconds(seconds) : null,
  }
}

function refused(message: string): SimulatedFailure {
  return new SimulatedFailure(400, 'invalid_request', message)
}

/** A requested refusal has status 200, as many of the vendor's do; its code is in the body. */
function readHttpStatus({ status, isAskedFor }: SimulatedFailure): number {
  return isAskedFor ? 200 : status
}

function errorBody({ status, message }: SimulatedFailure): object {
  return { code: status, msg: message, data: null }
}
