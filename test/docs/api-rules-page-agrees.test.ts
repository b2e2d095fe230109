/** The numbers and states of docs/api-rules.md are those of the schemas. */
import t from 'tap'
import { DEFAULT_TRIAL_CREDIT, MINIMUM_TOP_UP } from '../../schemas/accounts/account.ts'
import { KEY_LENGTH_CHARS, KEY_SHOWN_CHARS } from '../../schemas/accounts/key.ts'
import {
  LOG_CSV_MAX_ROWS,
  LOG_LIMIT_DEFAULT_ROWS,
  LOG_LIMIT_MAX_ROWS,
  UNIT_TYPES,
} from '../../schemas/call-log/row.ts'
import { LOG_SUMMARY_CACHE_SECONDS, LOG_SUMMARY_MAX_DAYS } from '../../schemas/call-log/summary.ts'
import { ENDPOINT_TYPES, ESTIMATE_OUTPUT_CAP_TOKENS } from '../../schemas/config/catalog.ts'
import {
  BATCH_MAX_PAGES,
  MCP_SEARCH_DEFAULT_LIMIT,
  READ_PAGE_BODY_MAX_CHARS,
  READ_PAGES_BODY_MAX_CHARS,
  REST_BATCH_BODY_MAX_CHARS,
  SEARCH_DEFAULT_LIMIT,
  SEARCH_MAX_LIMIT,
  SOURCE_LINK_TTL_SECS,
} from '../../schemas/knowledge/wiki.ts'
import { AVATAR_LIST_MAX, AVATAR_NAME_MAX_CHARS } from '../../schemas/media/avatars.ts'
import {
  CARD_DESCRIPTION_MAX_CHARS,
  CARD_NAME_MAX_CHARS,
  PICTURES_MAX,
  TITLE_MAX_CHARS,
} from '../../schemas/media/clips.ts'
import { CALLER_LINK_MAX_CHARS } from '../../schemas/media/fields.ts'
import { IMAGES_MAX, REFERENCE_IMAGES_MAX } from '../../schemas/media/images.ts'
import { LYRICS_MAX_CHARS, MUSIC_PROMPT_MAX_CHARS } from '../../schemas/media/music.ts'
import { SPEECH_INPUT_MAX_CHARS, SPEED_MAX, SPEED_MIN } from '../../schemas/media/speech.ts'
import { TRANSCRIPT_URL_MAX_CHARS } from '../../schemas/media/transcripts.ts'
import { PORTRAITS_MAX } from '../../schemas/media/videos.ts'
import { TASK_KINDS } from '../../schemas/tasks/kinds.ts'
import { outwardStatuses, TASK_LIST_DEFAULT, TASK_LIST_MAX } from '../../schemas/tasks/list.ts'
import { TASK_RULES } from '../../schemas/tasks/task.ts'
import { readText } from '../support/source-files.ts'

const page = readText('docs/api-rules.md')

const section = (heading: string): string =>
  page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? ''

const inWords = (value: number): string => value.toLocaleString('en-US')

const BOUNDS: Readonly<Record<string, readonly (number | string)[]>> = {
  'Names and forms': [KEY_LENGTH_CHARS, KEY_SHOWN_CHARS],
  'Accounts and wallets': [DEFAULT_TRIAL_CREDIT, MINIMUM_TOP_UP],
  'Pre-charge': [ESTIMATE_OUTPUT_CAP_TOKENS],
  Tasks: [TASK_LIST_DEFAULT, TASK_LIST_MAX],
  'Links from clients': [CALLER_LINK_MAX_CHARS],
  Images: [IMAGES_MAX, REFERENCE_IMAGES_MAX],
  Music: [MUSIC_PROMPT_MAX_CHARS, LYRICS_MAX_CHARS],
  Speech: [SPEECH_INPUT_MAX_CHARS, SPEED_MIN, SPEED_MAX],
  Models: ENDPOINT_TYPES,
  'Call log rows': UNIT_TYPES,
  Transcripts: [TRANSCRIPT_URL_MAX_CHARS],
  Avatars: [AVATAR_NAME_MAX_CHARS, AVATAR_LIST_MAX],
  'Digital humans': [PORTRAITS_MAX],
  Clips: [TITLE_MAX_CHARS, CARD_NAME_MAX_CHARS, CARD_DESCRIPTION_MAX_CHARS, PICTURES_MAX],
  'Call log list': [LOG_LIMIT_DEFAULT_ROWS, LOG_LIMIT_MAX_ROWS],
  'Call log CSV': [LOG_CSV_MAX_ROWS],
  'Call log summary': [LOG_SUMMARY_MAX_DAYS, LOG_SUMMARY_CACHE_SECONDS],
  'Knowledge search': [
    SEARCH_DEFAULT_LIMIT,
    SEARCH_MAX_LIMIT,
    BATCH_MAX_PAGES,
    REST_BATCH_BODY_MAX_CHARS,
    SOURCE_LINK_TTL_SECS,
  ],
  MCP: [
    MCP_SEARCH_DEFAULT_LIMIT,
    SEARCH_MAX_LIMIT,
    BATCH_MAX_PAGES,
    READ_PAGE_BODY_MAX_CHARS,
    READ_PAGES_BODY_MAX_CHARS,
  ],
}

t.test('each bound is named under its heading', async (t) => {
  for (const [heading, bounds] of Object.entries(BOUNDS))
    for (const bound of bounds) {
      const text = typeof bound === 'number' ? inWords(bound) : bound
      t.match(section(heading), new RegExp(`(?<![\\d,.])${text}(?![\\d,]*\\d)`), `${heading}: ${text}`)
    }
})

const MINUTE_MS = 60_000
const DURATIONS: Readonly<Record<string, number>> = {
  hours: 60 * MINUTE_MS,
  minutes: MINUTE_MS,
  seconds: 1000,
}

t.test('each kind of task has the states and times of its row', async (t) => {
  for (const kind of TASK_KINDS) {
    const row = new RegExp(`^\\| ${kind} \\| (.+) \\| (\\d+) (\\w+) \\| (\\d+) s.* \\|$`, 'm').exec(
      section('Tasks'),
    )
    const [, states = '', count, unit = '', submitSeconds] = row ?? []
    const rules = TASK_RULES[kind]
    t.equal(Number(count) * (DURATIONS[unit] ?? 0), rules.deadlineMs, `${kind}: time`)
    t.equal(Number(submitSeconds) * 1000, rules.submitTimeoutMs, `${kind}: submit`)
    if (!states.startsWith('not shown'))
      t.same(states.split(', ').sort(), [...outwardStatuses(kind)].sort(), kind)
  }
})
