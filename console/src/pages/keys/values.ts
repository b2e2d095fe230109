/** The fields of a key as values of a form, and the changes of a form. */
import type { listKeys } from '../../../../schemas/management/accounts/keys.ts'
import type { AnswerOf } from '../../../../schemas/management/operation.ts'
import { parseFieldTime, printFieldTime } from '../../format.ts'

export type Key = AnswerOf<typeof listKeys>['data'][number]

export interface LimitTexts {
  readonly requests_per_minute: string
  readonly concurrency: string
  readonly allowed_addresses: string
  readonly max_price: string
}

export interface KeyValues extends LimitTexts {
  readonly name: string
  /** Null for every model. */
  readonly allowed_models: readonly string[] | null
  readonly expires_at: string
  readonly spend_cap: string
  readonly account_logs: boolean
}

type Limits = Pick<Key, keyof LimitTexts>
type Changes = Partial<
  Limits & Pick<Key, 'name' | 'allowed_models' | 'expires_at' | 'account_logs'> & { spend_cap: string }
>

export const NO_LIMITS: LimitTexts = {
  requests_per_minute: '',
  concurrency: '',
  allowed_addresses: '',
  max_price: '',
}

const splitWords = (text: string): string[] => text.split(/[\s,]+/).filter((word) => word !== '')

const parseNumber = (text: string): number | null => (text === '' ? null : Number(text))

export const parseLimits = (texts: LimitTexts): Limits => ({
  requests_per_minute: parseNumber(texts.requests_per_minute),
  concurrency: parseNumber(texts.concurrency),
  allowed_addresses:
    splitWords(texts.allowed_addresses).length === 0 ? null : splitWords(texts.allowed_addresses),
  max_price: texts.max_price === '' ? null : texts.max_price,
})

export const toValues = (key: Key): KeyValues => ({
  name: key.name,
  allowed_models: key.allowed_models,
  expires_at: printFieldTime(key.expires_at),
  spend_cap: key.spend_cap ?? '',
  account_logs: key.account_logs,
  requests_per_minute: String(key.requests_per_minute ?? ''),
  concurrency: String(key.concurrency ?? ''),
  allowed_addresses: key.allowed_addresses?.join(', ') ?? '',
  max_price: key.max_price ?? '',
})

/** Returns the fields that the user changed in the form, whatever the key has by now. */
export function findChanges(before: KeyValues, after: KeyValues): Changes {
  const { allowed_models: models } = after
  const all = {
    ...parseLimits(after),
    name: after.name,
    allowed_models: models && [...models],
    expires_at: parseFieldTime(after.expires_at),
    spend_cap: after.spend_cap,
    account_logs: after.account_logs,
  }
  const names = Object.keys(all) as (keyof KeyValues)[]
  const isChanged = (name: keyof KeyValues) => JSON.stringify(before[name]) !== JSON.stringify(after[name])
  return Object.fromEntries(names.filter(isChanged).map((name) => [name, all[name]]))
}
