/** Limits of one key: how much at a time, and from where. */
import { t } from '../../i18n.ts'
import { Field } from '../../ui/form.tsx'
import { Fact } from '../../ui/states.tsx'
import type { Key, LimitTexts } from './texts.ts'

type Limits = Pick<Key, 'requests_per_minute' | 'concurrency' | 'allowed_addresses'>

interface LimitFieldsProps {
  readonly texts: LimitTexts
  onChange(texts: LimitTexts): void
}

export function LimitFields({ texts, onChange }: LimitFieldsProps) {
  const limit = { hint: t('Empty: limited by the account alone.'), type: 'number', min: 1 }
  const field = (name: keyof LimitTexts) => ({
    value: texts[name],
    onText: (text: string) => onChange({ ...texts, [name]: text }),
  })
  return (
    <>
      <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
        <Field label={t('Requests per minute')} {...limit} {...field('perMinute')} />
        <Field label={t('Calls at the same time')} {...limit} {...field('concurrency')} />
      </div>
      <Field
        label={t('Allowed addresses')}
        hint={t(
          'Addresses and networks such as 203.0.113.7 and 10.0.0.0/8, with commas between. Empty: from anywhere.',
        )}
        {...field('addresses')}
      />
    </>
  )
}

/** The limits that are set, as lines of a list. */
export function LimitFacts({ item }: { readonly item: Limits }) {
  const { requests_per_minute, concurrency, allowed_addresses } = item
  return (
    <>
      {requests_per_minute !== null && <Fact name={t('Requests per minute')} value={requests_per_minute} />}
      {concurrency !== null && <Fact name={t('Calls at the same time')} value={concurrency} />}
      {allowed_addresses !== null && (
        <Fact
          name={t('Allowed addresses')}
          value={<code className="font-mono text-xs">{allowed_addresses.join(', ')}</code>}
        />
      )}
    </>
  )
}
