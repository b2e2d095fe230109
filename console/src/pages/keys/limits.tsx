/** Limits of one key: how much at a time, and from where. */
import { useLingui } from '@lingui/react'
import { t } from '../../i18n.ts'
import { Fact } from '../../ui/fact.tsx'
import { Field } from '../../ui/field.tsx'
import type { Key } from './state.tsx'

/** The texts of the fields. */
export interface LimitTexts {
  readonly perMinute: string
  readonly concurrency: string
  readonly addresses: string
}

type Limits = Pick<Key, 'requests_per_minute' | 'concurrency' | 'allowed_addresses'>

export const NO_LIMITS: LimitTexts = { perMinute: '', concurrency: '', addresses: '' }

export const limitTextsOf = (key: Limits): LimitTexts => ({
  perMinute: String(key.requests_per_minute ?? ''),
  concurrency: String(key.concurrency ?? ''),
  addresses: key.allowed_addresses?.join(', ') ?? '',
})

export const wordsOf = (text: string): string[] => text.split(/[\s,]+/).filter((word) => word !== '')

const numberOrNull = (text: string): number | null => (text === '' ? null : Number(text))

/** Returns the fields of a request. */
export const limitsOf = ({ perMinute, concurrency, addresses }: LimitTexts): Limits => ({
  requests_per_minute: numberOrNull(perMinute),
  concurrency: numberOrNull(concurrency),
  allowed_addresses: wordsOf(addresses).length === 0 ? null : wordsOf(addresses),
})

interface LimitFieldsProps {
  readonly texts: LimitTexts
  onChange(texts: LimitTexts): void
}

export function LimitFields({ texts, onChange }: LimitFieldsProps) {
  useLingui()
  return (
    <>
      <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
        <Field
          label={t('Requests per minute')}
          hint={t('Empty: limited by the account alone.')}
          type="number"
          min={1}
          value={texts.perMinute}
          onText={(text) => onChange({ ...texts, perMinute: text })}
        />
        <Field
          label={t('Calls at the same time')}
          hint={t('Empty: limited by the account alone.')}
          type="number"
          min={1}
          value={texts.concurrency}
          onText={(text) => onChange({ ...texts, concurrency: text })}
        />
      </div>
      <Field
        label={t('Allowed addresses')}
        hint={t(
          'Addresses and networks such as 203.0.113.7 and 10.0.0.0/8, with commas between. Empty: from anywhere.',
        )}
        value={texts.addresses}
        onText={(text) => onChange({ ...texts, addresses: text })}
      />
    </>
  )
}

/** The limits that are set, as lines of a list. */
export function LimitFacts({ item }: { readonly item: Limits }) {
  useLingui()
  const { requests_per_minute, concurrency, allowed_addresses } = item
  return (
    <>
      {requests_per_minute !== null && <Fact name={t('Requests per minute')}>{requests_per_minute}</Fact>}
      {concurrency !== null && <Fact name={t('Calls at the same time')}>{concurrency}</Fact>}
      {allowed_addresses !== null && (
        <Fact name={t('Allowed addresses')}>
          <code className="font-mono text-xs">{allowed_addresses.join(', ')}</code>
        </Fact>
      )}
    </>
  )
}
