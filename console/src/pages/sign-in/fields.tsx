/** The fields of email addresses and passwords, named so that browsers fill them in. */
import { t } from '../../i18n.ts'
import { Field, type FieldProps } from '../../ui/form.tsx'

const MIN_PASSWORD_CHARS = 10

export const EmailField = (props: Pick<FieldProps, 'value' | 'onText' | 'readOnly' | 'tabIndex'>) => (
  <Field label={t('Email')} name="email" type="email" autoComplete="username" required {...props} />
)

export const PasswordField = (props: Pick<FieldProps, 'value' | 'onText'>) => (
  <Field
    label={t('Password')}
    name="password"
    type="password"
    autoComplete="current-password"
    required
    {...props}
  />
)

export const NewPasswordField = (props: Pick<FieldProps, 'label' | 'name' | 'value' | 'onText'>) => (
  <Field
    hint={t('At least 10 characters. Several words are easy to remember.')}
    type="password"
    autoComplete="new-password"
    required
    minLength={MIN_PASSWORD_CHARS}
    {...props}
  />
)
