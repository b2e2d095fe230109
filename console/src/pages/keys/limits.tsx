/** The limits of one key: rate, concurrency, price and addresses. */
import { t } from '../../i18n.ts'
import { AmountField, Field, NumberField } from '../../ui/form.tsx'
import { Fact } from '../../ui/states.tsx'
import { Code, Money } from '../../ui/text.tsx'
import type { Key, LimitTexts } from './values.ts'

interface LimitFieldsProps {
  /** Makes the properties of a field. */
  field(name: keyof LimitTexts): { readonly name: string; readonly value: string; onText(text: string): void }
}

export function LimitFields({ field }: LimitFieldsProps) {
  const limit = { hint: t("Leave empty to apply only the account's limit."), min: 1 }
  return (
    <>
      <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
        <NumberField label={t('Requests per minute')} {...limit} {...field('requests_per_minute')} />
        <NumberField label={t('Concurrent calls')} {...limit} {...field('concurrency')} />
      </div>
      <Field
        label={t('Allowed addresses')}
        hint={t(
          'Addresses and networks separated by commas, such as 203.0.113.7 and 10.0.0.0/8. Leave empty to allow any address.',
        )}
        {...field('allowed_addresses')}
      />
      <AmountField
        label={t('Highest price of a call')}
        hint={t('In credits. Calls that could cost more are refused. Leave empty for no limit.')}
        required={false}
        {...field('max_price')}
      />
    </>
  )
}

type Limits = Pick<Key, 'requests_per_minute' | 'concurrency' | 'allowed_addresses' | 'max_price'>

/** The limits of a key as lines of a list. */
export const LimitFacts = ({ requests_per_minute, concurrency, allowed_addresses, max_price }: Limits) => (
  <>
    {requests_per_minute !== null && <Fact name={t('Requests per minute')} value={requests_per_minute} />}
    {concurrency !== null && <Fact name={t('Concurrent calls')} value={concurrency} />}
    {allowed_addresses !== null && (
      <Fact name={t('Allowed addresses')} value={<Code>{allowed_addresses.join(', ')}</Code>} />
    )}
    {max_price !== null && <Fact name={t('Highest price of a call')} value={<Money amount={max_price} />} />}
  </>
)
