/** The fields that keys and management tokens share. */
import { t } from '../i18n.ts'
import { Field } from '../ui/form.tsx'

interface TextProps {
  readonly value: string
  onText(text: string): void
}

export const ExpiresField = (props: TextProps) => (
  <Field
    label={t('Expires')}
    hint={t('It is refused from then on. Leave it empty for no expiry.')}
    type="datetime-local"
    {...props}
  />
)

export const ProgramNameField = (props: TextProps) => (
  <Field
    label={t('Name')}
    hint={t('What uses it, such as a program or a machine.')}
    required
    maxLength={100}
    {...props}
  />
)

export const ModelsField = (props: TextProps) => (
  <Field
    label={t('Models')}
    hint={t('Ids separated by commas. Leave it empty for every model; type "none" for no model.')}
    {...props}
  />
)
