/** The choice of a key as a filter. */
import { type KeyNames, MAX_NAMED_KEYS } from '../api/key-names.ts'
import { t } from '../i18n.ts'
import { SelectField } from '../ui/form.tsx'

interface KeyFieldProps {
  /** Undefined while they are read. */
  readonly names: KeyNames | undefined
  readonly value: string | undefined
  /** Whether all keys are a choice. */
  readonly hasAll: boolean
  onChange(keyId: string): void
}

export function KeyField({ names, value = '', hasAll, onChange }: KeyFieldProps) {
  const keys = names?.keys ?? []
  // The URL may name a key that is not listed: what is chosen is shown all the same.
  const isOther = value !== '' && !keys.some(({ id }) => id === value)
  return (
    <SelectField
      label={t('Key')}
      hint={
        names?.isWhole === false
          ? t('The first {count} keys. Search finds any other by its id.', { count: MAX_NAMED_KEYS })
          : undefined
      }
      value={value}
      onText={onChange}
      options={[
        ...(hasAll ? [['', t('All')] as const] : []),
        ...(isOther ? [[value, value] as const] : []),
        ...keys.map(({ id, name }) => [id, name] as const),
      ]}
    />
  )
}
