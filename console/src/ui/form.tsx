/** Forms: they send without a reload, and in a dialog end with their buttons. */
import type { FormHTMLAttributes, ReactNode } from 'react'
import { t } from '../i18n.ts'
import { Button, type ButtonKind } from './button.tsx'
import { FormError } from './states.tsx'

/** The buttons at the end of a dialog. */
export const Actions = ({ children }: { readonly children: ReactNode }) => (
  <div className="mt-5 flex flex-wrap justify-end gap-2">{children}</div>
)

/** The button of a dialog that shows the result of an act. */
export const Done = ({ onClose }: { onClose(): void }) => (
  <Actions>
    <Button kind="primary" onClick={onClose}>
      {t('Done')}
    </Button>
  </Actions>
)

interface FormProps extends Omit<FormHTMLAttributes<HTMLFormElement>, 'onSubmit'> {
  onSubmit(): unknown
}

export const Form = ({ onSubmit, ...rest }: FormProps) => (
  <form
    onSubmit={(event) => {
      event.preventDefault()
      onSubmit()
    }}
    {...rest}
  />
)

interface DialogFormProps {
  /** What the form does: it shows why that was refused. */
  readonly sends: { readonly error: Error | null; readonly isPending: boolean; mutate(): unknown }
  /** The name of what it does, on the button. */
  readonly act: string
  readonly kind?: ButtonKind
  readonly cancel?: string
  readonly isDisabled?: boolean
  readonly children: ReactNode
  onClose(): void
}

/** The form of a dialog: fields, the error, and the buttons that cancel and send. */
export const DialogForm = ({
  sends,
  act,
  kind = 'primary',
  cancel = t('Cancel'),
  isDisabled = false,
  children,
  onClose,
}: DialogFormProps) => (
  <Form className="flex flex-col gap-4" onSubmit={() => sends.mutate()}>
    {children}
    <FormError error={sends.error} />
    <Actions>
      <Button onClick={onClose}>{cancel}</Button>
      <Button type="submit" kind={kind} disabled={isDisabled} isBusy={sends.isPending}>
        {act}
      </Button>
    </Actions>
  </Form>
)
