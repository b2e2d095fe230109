/** The fields of a key as texts of a form, and the changes of a form. */
import type { listKeys } from '../../../../schemas/management/accounts/keys.ts'
import type { AnswerOf } from '../../../../schemas/management/operation.ts'
import { parseFieldTime, printFieldTime } from '../../format.ts'

export type Key = AnswerOf<typeof listKeys>['data'][number]

export interface LimitTexts {
  readonly perMinute: string
  readonly concurrency: string
  readonly addresses: string
  readonly maxPrice: string
}

interface KeyTexts extends LimitTexts {
  readonly name: string
  readonly models: string
  readonly expires: string
  readonly cap: string
  readonly accountLogs: boolean
}

type Limits = Pick<Key, 'requests_per_minute' | 'concurrency' | 'allowed_addresses' | 'max_price'>
type Changes = Partial<
  Limits & Pick<Key, 'name' | 'allowed_models' | 'expires_at' | 'account_logs'> & { spend_cap: string }
>

export const NO_LIMITS: LimitTexts = { perMinute: '', concurrency: '', addresses: '', maxPrice: '' }
/** Stands for an empty list, which allows no model, as on the command line. */
const NO_MODEL = 'none'

const splitWords = (text: string): string[] => text.split(/[\s,]+/).filter((word) => word !== '')

const parseNumber = (text: string): number | null => (text === '' ? null : Number(text))

export const parseLimits = ({ perMinute, concurrency, addresses, maxPrice }: LimitTexts): Limits => ({
  requests_per_minute: parseNumber(perMinute),
  concurrency: parseNumber(concurrency),
  allowed_addresses: splitWords(addresses).length === 0 ? null : splitWords(addresses),
  max_price: maxPrice === '' ? null : maxPrice,
})

/** Returns the models that a text allows; null for every model. */
export function parseModels(text: string): string[] | null {
  const words = splitWords(text)
  if (words.length === 0) return null
  return words.length === 1 && words[0] === NO_MODEL ? [] : words
}

export const printTexts = (key: Key): KeyTexts => ({
  name: key.name,
  models: key.allowed_models?.length === 0 ? NO_MODEL : (key.allowed_models?.join(', ') ?? ''),
  expires: printFieldTime(key.expires_at),
  cap: key.spend_cap ?? '',
  accountLogs: key.account_logs,
  perMinute: String(key.requests_per_minute ?? ''),
  concurrency: String(key.concurrency ?? ''),
  addresses: key.allowed_addresses?.join(', ') ?? '',
  maxPrice: key.max_price ?? '',
})

/** Returns the fields that the user changed in the form, whatever the key has by now. */
export function findChanges(before: KeyTexts, after: KeyTexts): Changes {
  const { requests_per_minute, concurrency, allowed_addresses, max_price } = parseLimits(after)
  const fields = {
    name: { name: after.name },
    models: { allowed_models: parseModels(after.models) },
    expires: { expires_at: parseFieldTime(after.expires) },
    cap: { spend_cap: after.cap },
    accountLogs: { account_logs: after.accountLogs },
    perMinute: { requests_per_minute },
    concurrency: { concurrency },
    addresses: { allowed_addresses },
    maxPrice: { max_price },
  } as const satisfies Readonly<Record<keyof KeyTexts, Changes>>
  const names = Object.keys(fields) as (keyof KeyTexts)[]
  return Object.assign(
    {},
    ...names.filter((name) => before[name] !== after[name]).map((name) => fields[name]),
  )
}
