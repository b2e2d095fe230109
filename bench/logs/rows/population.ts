/**
 * Accounts, their keys, models and results of calls. Shares are those of a busy gateway; the names are invented.
 */
import { Random } from '../../harness/random.ts'
import { sharesFrom } from './skew.ts'

export const ACCOUNTS = 1_000
export const LARGEST_ACCOUNT_SHARE = 0.1
/** The rank of the median account. */
export const MEDIAN_RANK = ACCOUNTS / 2 - 1

const KEYS_OF_LARGEST = 24
const MOST_KEYS_OF_OTHERS = 12
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const ID_CHARS = 26
const KEY_NUMBER_CHARS = 3

export interface Account {
  readonly id: string
  readonly share: number
  readonly keys: number
}

/** Returns the accounts by rank, the largest first; the same for the same seed. */
export const makeAccounts = (seed: number): Account[] => {
  const random = new Random(seed)
  const shares = sharesFrom(ACCOUNTS, LARGEST_ACCOUNT_SHARE)
  return shares.map((share, rank) => {
    const tail = Array.from({ length: ID_CHARS - 4 }, () => ALPHABET[random.between(0, 32)]).join('')
    const keys = rank === 0 ? KEYS_OF_LARGEST : random.between(1, MOST_KEYS_OF_OTHERS + 1)
    return { id: `acc_01J8${tail}`, share, keys }
  })
}

/** Ids differ from the account's in their prefix and their last characters. */
export const KEY_STEM_CHARS = ID_CHARS - KEY_NUMBER_CHARS

export const keyId = (account: Account, number: number): string =>
  `key_${account.id.slice('acc_'.length, 'acc_'.length + KEY_STEM_CHARS)}${String(number).padStart(KEY_NUMBER_CHARS, '0')}`

export const KEY_NAMES = [
  'production',
  'staging',
  'batch',
  'notebook',
  'support',
  'search',
  'ci',
  'evaluation',
]

interface Model {
  readonly id: string
  readonly share: number
  /** Null for a model billed by tokens. */
  readonly unit: { readonly type: string; readonly taskPrefix: string; readonly extension: string } | null
  /** Credits for a million prompt tokens; for a unit a millionth of its price. */
  readonly inputPrice: number
  /** Credits for a million output tokens. */
  readonly outputPrice: number
}

const chat = (id: string, share: number, inputPrice: number, outputPrice: number): Model => ({
  id,
  share,
  unit: null,
  inputPrice,
  outputPrice,
})
const media = (id: string, share: number, type: string, taskPrefix: string, extension: string): Model => ({
  id,
  share,
  unit: { type, taskPrefix, extension },
  inputPrice: 40_000,
  outputPrice: 0,
})

export const MODELS: readonly Model[] = [
  chat('sonata-small', 0.24, 0.15, 0.6),
  chat('sonata-large', 0.18, 2.5, 10),
  chat('etude-2', 0.13, 0.4, 1.6),
  chat('nocturne-mini', 0.1, 0.1, 0.4),
  chat('nocturne-3', 0.08, 3, 15),
  chat('fugue-reasoner', 0.06, 2, 8),
  chat('rondo-code', 0.05, 1.2, 4.8),
  chat('prelude-1', 0.035, 0.6, 2.4),
  chat('toccata-long', 0.022, 1.25, 5),
  chat('aria-vision', 0.014, 1, 4),
  chat('canon-8', 0.008, 0.2, 0.2),
  chat('scherzo-beta', 0.005, 0.5, 2),
  chat('motet-instruct', 0.004, 0.3, 0.9),
  chat('coda-legacy', 0.002, 10, 30),
  media('easel-2', 0.032, 'image', 'img', 'png'),
  media('easel-turbo', 0.018, 'image', 'img', 'png'),
  media('lantern-video', 0.008, 'video', 'vid', 'mp4'),
  media('choir-speech', 0.006, 'audio', 'spc', 'mp3'),
  media('scribe-1', 0.004, 'transcript', 'asr', 'json'),
  media('organ-music', 0.002, 'music', 'mus', 'mp3'),
]

export const STATUS_SHARES = { success: 0.94, error: 0.03, interrupted: 0.018, rejected: 0.012 } as const

interface ErrorShare {
  readonly code: string
  readonly message: string
  readonly share: number
}

export const ERRORS: readonly ErrorShare[] = [
  { code: 'upstream_error', message: 'The upstream answered with status 500.', share: 0.62 },
  { code: 'upstream_unreachable', message: 'The upstream could not be reached.', share: 0.2 },
  { code: 'no_channel_available', message: 'No channel can serve this model at the moment.', share: 0.1 },
  { code: 'internal_error', message: 'Something went wrong on our side.', share: 0.079 },
  { code: 'service_unavailable', message: 'The service is not available at the moment.', share: 0.001 },
]
export const REFUSALS: readonly ErrorShare[] = [
  { code: 'invalid_request', message: 'max_tokens: must be a whole number.', share: 0.4 },
  { code: 'quota_exceeded', message: 'The balance does not cover this call.', share: 0.34 },
  { code: 'rate_limit_exceeded', message: 'Too many requests. Try again shortly.', share: 0.2 },
  { code: 'model_not_allowed', message: 'This API key may not call this model.', share: 0.06 },
]
export const TIMEOUT: ErrorShare = {
  code: 'upstream_timeout',
  message: 'The call took longer than 180 seconds.',
  share: 0.3,
}

/** A combination of one call in two hundred thousand. */
export const RARE = { model: 'coda-legacy', status: 'error', errorCode: 'internal_error' } as const

/** Two years in the past, so that results do not depend on the day. Epoch milliseconds. */
export const START_MS = Date.UTC(2023, 0, 1)
export const END_MS = Date.UTC(2025, 0, 1)
