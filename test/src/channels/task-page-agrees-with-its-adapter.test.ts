/** The examples of docs/upstream-task.md are what the adapter sends and what it understands. */
import t from 'tap'
import { type MediaWork, taskResult } from '../../../schemas/media/job.ts'
import { TASK_RULES, type TaskKind } from '../../../schemas/tasks/task.ts'
import { MEDIA_FAILURES } from '../../../src/channels/media/failure.ts'
import {
  readClipCategories,
  readClipTemplates,
  taskPresets,
} from '../../../src/channels/media/task/catalog.ts'
import { task } from '../../../src/channels/media/task/task.ts'
import { readText } from '../../support/source-files.ts'
import {
  answerOf,
  channelOf,
  followOf,
  jsonOf,
  linked,
  pollOf,
  producedIn,
  submitOf,
  urlOf,
} from './support.ts'

const page = readText('docs/upstream-task.md')
const channel = channelOf('task', 'https://studio.example')

interface Example {
  readonly reference: string
  readonly kind: MediaWork
  readonly model: string
  readonly input: Record<string, unknown>
}

/** A block may have several values, each from the start of a line. */
const examplesUnder = (text: string): unknown[] =>
  [...text.matchAll(/```json\n([\s\S]*?)```/g)].flatMap(([, json = '']) =>
    json.split(/^(?=\{)/m).map((value) => JSON.parse(value)),
  )

const sectionOf = (heading: string): string => {
  const [, ...after] = page.split(`\n${heading}\n`)
  return (after[0] ?? '').split(/\n##+ /)[0] ?? ''
}

const kinds = [...page.matchAll(/^### `(.+)`$/gm)].map(([, names = '']) => names.split('`, `'))

t.test('every kind of the adapter has an example', async (t) => {
  t.strictSame(kinds.flat().toSorted(), task.works.toSorted())
})

const file = (value: unknown) => (value === undefined ? null : linked(String(value)))
const files = (value: unknown) => (value as string[] | undefined)?.map((url) => linked(url)) ?? []

/** The job that an input was made of. */
function jobBehind({ kind, input }: Example): object {
  const base = { work: kind, ...input }
  switch (kind) {
    case 'image':
    case 'image_edit':
      return { ...base, images: files(input.images), mask: file(input.mask) }
    case 'video': {
      const parts = input.content as Record<string, unknown>[]
      const content = parts.map((part) => (part.type === 'text' ? part : { ...part, file: file(part.file) }))
      return { ...base, content }
    }
    case 'avatar_video':
    case 'voice':
      return { ...base, audio: file(input.audio) }
    case 'lipsync':
      return { ...base, source_video: file(input.source_video), audio: file(input.audio) }
    case 'motion':
      return { ...base, source_video: file(input.source_video), portraits: files(input.portraits) }
    case 'clip_compose': {
      const items = input.pip_config as Record<string, unknown>[]
      const pip_config = items.map((item) => ({ ...item, media: file(item.media) }))
      return { ...base, video: file(input.video), music: file(input.music), pip_config }
    }
    case 'avatar':
      return { ...base, source: file(input.source) }
    case 'subtitle':
      return { ...base, video: file(input.video) }
    default:
      return base
  }
}

for (const names of kinds) {
  t.test(`${names.join(', ')}: request and result`, async (t) => {
    const [request, answer] = examplesUnder(sectionOf(`### \`${names.join('`, `')}\``)) as [Example, unknown]
    const submit = { ...submitOf(jobBehind(request), request.model), reference: request.reference, urlOf }
    t.strictSame(jsonOf(task.submit(channel, submit)), request)
    const outcome = producedIn(followOf(task).readPoll(answerOf(200, answer), pollOf(jobBehind(request))))
    t.strictSame(taskResult.parse(outcome.result), outcome.result)
    t.strictSame(told(outcome.result), told((answer as { result: unknown }).result), 'nothing is lost')
  })
}

/** Every text and number in a result, whatever their names. */
function told(value: unknown): unknown[] {
  const values = (each: unknown): unknown[] =>
    typeof each === 'object' && each !== null
      ? Object.values(each).flatMap(values)
      : each === null
        ? []
        : [each]
  const positions = new Set(['video', 'audio', 'image', 'cover', 0, 1])
  return [...new Set(values(value).filter((each) => !positions.has(each as string)))].toSorted()
}

t.test('codes of the page are the codes of the adapter', async (t) => {
  const rows = [...sectionOf('## Errors').matchAll(/^\| `(\w+)` \|.*\| (\d*) ?\|$/gm)]
  const codes = rows.map(([, code, status]) => [code, status])
  const ours = Object.entries(MEDIA_FAILURES).map(([code, status]) => [code, String(status)])
  t.strictSame(codes.filter(([, status]) => status !== '').toSorted(), ours.toSorted())
})

const KIND_OF: Readonly<Record<MediaWork, TaskKind>> = {
  image: 'image',
  image_edit: 'image',
  video: 'video',
  avatar_video: 'video',
  lipsync: 'video',
  motion: 'video',
  clip_compose: 'video',
  music: 'music',
  speech: 'speech',
  voice: 'voice',
  avatar: 'avatar',
  transcript: 'transcript',
  subtitle: 'subtitle',
}

const UNITS_SECONDS: Readonly<Record<string, number>> = { s: 1, min: 60, h: 3600 }
const msOf = (text = ''): number => {
  const [, count, unit = ''] = /^(?:1 to )?(\d+) (s|min|h)$/.exec(text.trim()) ?? []
  return Number(count) * (UNITS_SECONDS[unit] ?? Number.NaN) * 1000
}

t.test('times of the page are those of the tasks', async (t) => {
  const rows = [
    ...sectionOf('## What is asked again, and when').matchAll(
      /^\| (`.+`) \| (.+) \| (.+) \| (1 to .+) \|$/gm,
    ),
  ]
  const named = rows.flatMap(([, names = '']) => [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name))
  t.strictSame(named.toSorted(), task.works.toSorted())
  for (const [, names = '', deadline, submit, wait] of rows) {
    for (const [, work = ''] of names.matchAll(/`(\w+)`/g)) {
      const rules = TASK_RULES[KIND_OF[work as MediaWork]]
      t.strictSame(
        [msOf(deadline), msOf(submit), 1000, msOf(wait)],
        [rules.deadlineMs, rules.submitTimeoutMs, rules.pollFirstMs, rules.pollMaxMs],
        work,
      )
    }
  }
})

t.test('presets, templates and categories', async (t) => {
  const [presets, templates, categories] = examplesUnder(sectionOf('## What everybody may use'))
  t.strictSame(taskPresets('avatar').read(answerOf(200, presets)), (presets as { presets: unknown }).presets)
  t.strictSame(readClipTemplates(answerOf(200, templates)), (templates as { list: unknown }).list)
  t.strictSame(readClipCategories(answerOf(200, categories)), (categories as { list: unknown }).list)
})
