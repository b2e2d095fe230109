/** Reads answers with sound: the bytes of a file, whose length is read from it. */
import { audioSeconds } from '../../core/media/audio-length.ts'
import type { MediaAnswer, SubmitOutcome } from './adapter.ts'
import { jsonIn, messageOf, refused, unknown } from './answer.ts'
import { isText, produced } from './files.ts'

const typeOf = (answer: MediaAnswer): string =>
  (answer.header('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''

/** Types that upstreams report for unknown bytes. */
const UNSAID: ReadonlySet<string> = new Set(['', 'application/octet-stream', 'binary/octet-stream'])

/** Reads a 2xx. Text in place of sound is an error with a wrong status, whatever its reported type. */
export function readSpeech(answer: MediaAnswer): SubmitOutcome {
  const type = typeOf(answer)
  if (answer.body.length === 0) return unknown('The answer is empty.')
  const json = isText(answer.body) ? jsonIn(answer) : undefined
  if (json !== undefined) return refused(502, messageOf(json, 'The upstream sent no sound.'))
  if (isText(answer.body)) return unknown('The answer is no sound.')
  const seconds = audioSeconds(answer.body)
  if (!type.startsWith('audio/') && !UNSAID.has(type) && seconds === null) {
    return unknown('The answer is no sound.')
  }
  const source = { type: 'bytes', bytes: answer.body, mediaType: type } as const
  return produced([{ role: 'audio', source, facts: { seconds } }], { seconds })
}
