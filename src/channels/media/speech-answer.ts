/** Reads answers with sound: the bytes of a file, whose length is read from it. */
import { measureAudioSeconds } from '../../core/media/audio-length.ts'
import type { MediaAnswer, SubmitOutcome } from './adapter.ts'
import { makeRefused, makeUnknown, parseAnswer, readMessage } from './answer.ts'
import { isText, makeProduced } from './files.ts'

const readType = (answer: MediaAnswer): string =>
  (answer.header('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''

/** Types that upstreams report for unknown bytes. */
const UNSAID: ReadonlySet<string> = new Set(['', 'application/octet-stream', 'binary/octet-stream'])

/** Reads a 2xx. Text in place of sound is an error with a wrong status, whatever its reported type. */
export function readSpeech(answer: MediaAnswer): SubmitOutcome {
  const type = readType(answer)
  if (answer.body.length === 0) return makeUnknown('The answer is empty.')
  const json = isText(answer.body) ? parseAnswer(answer) : undefined
  if (json !== undefined) return makeRefused(502, readMessage(json, 'The upstream sent no sound.'))
  if (isText(answer.body)) return makeUnknown('The answer is no sound.')
  const seconds = measureAudioSeconds(answer.body)
  if (!type.startsWith('audio/') && !UNSAID.has(type) && seconds === null) {
    return makeUnknown('The answer is no sound.')
  }
  const source = { type: 'bytes', bytes: answer.body, mediaType: type } as const
  return makeProduced([{ role: 'audio', source, facts: { seconds } }], { seconds })
}
