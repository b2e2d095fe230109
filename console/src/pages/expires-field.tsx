/** The time from which a key or a token is refused. */
import { t } from '../i18n.ts'
import { Field } from '../ui/form.tsx'

interface ExpiresFieldProps {
  readonly value: string
  onText(text: string): void
}

export function ExpiresField({ value, onText }: ExpiresFieldProps) {
  return (
    <Field
      label={t('Expires')}
      hint={t('Refused from then on. Empty: never.')}
      type="datetime-local"
      value={value}
      onText={onText}
    />
  )
}
