/** Asks an operator for the reason of an operation. */
import { t } from '../i18n.ts'
import { Field, type FieldProps } from '../ui/form.tsx'

const MAX_REASON_CHARS = 500

export const ReasonField = (props: Omit<FieldProps, 'label'>) => (
  <Field label={t('Reason')} required maxLength={MAX_REASON_CHARS} {...props} />
)
