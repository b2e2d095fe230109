/**
 * The recording that a voice is made from, where the gateway has it: how long it is is known before any upstream is
 * asked. Of a link that an upstream fetches by itself nobody here knows.
 */
import { VOICE_REFERENCE_MAX_SECONDS, VOICE_REFERENCE_MIN_SECONDS } from '../../../schemas/media/voices.ts'
import { measureAudioSeconds } from '../../../src/core/media/audio-length.ts'
import type { TaskStorage } from '../ports.ts'

/** What compression adds and takes away at either end. */
const TOLERANCE_SECONDS = 0.1
/** Three minutes without compression are less; a larger file is left to the upstream. */
const READ_MAX_BYTES = 64 * 1024 * 1024

/** Words for the client about a recording of a wrong length; null where nothing is wrong, or nobody knows. */
export async function findReferenceProblem(
  storage: Pick<TaskStorage, 'read'>,
  { key, bytes }: { readonly key: string; readonly bytes: number },
): Promise<string | null> {
  if (bytes > READ_MAX_BYTES) return null
  const seconds = measureAudioSeconds(await storage.read(key, bytes))
  if (seconds === null) return null
  const isRight =
    seconds > VOICE_REFERENCE_MIN_SECONDS - TOLERANCE_SECONDS &&
    seconds < VOICE_REFERENCE_MAX_SECONDS + TOLERANCE_SECONDS
  return isRight
    ? null
    : `The recording must be ${VOICE_REFERENCE_MIN_SECONDS} to ${VOICE_REFERENCE_MAX_SECONDS} seconds long; it is ${seconds.toFixed(1)}.`
}
