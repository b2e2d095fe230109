/** Form fields, and forms in pages and dialogs. */
import {
  type FormHTMLAttributes,
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
  useState,
} from 'react'
import { t } from '../i18n.ts'
import { Button, type ButtonKind } from './button.tsx'
import { FormError } from './states.tsx'

const CONTROL =
  'h-8 w-full rounded-md border border-edge bg-surface px-2.5 text-base text-ink placeholder:text-quiet aria-invalid:border-bad'

interface Labelled {
  readonly label: string
  readonly hint?: string
  readonly error?: string | null
}

interface Ids {
  readonly id: string
  readonly 'aria-describedby': string | undefined
  readonly 'aria-invalid': boolean
}

function Labels({ label, hint, error, children }: Labelled & { children: (ids: Ids) => ReactNode }) {
  const id = useId()
  const note = error ?? hint
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="font-medium text-sm">
        {label}
      </label>
      {children({ id, 'aria-describedby': note ? `${id}-note` : undefined, 'aria-invalid': Boolean(error) })}
      {note && (
        <p id={`${id}-note`} className={`text-xs ${error ? 'text-bad' : 'text-quiet'}`}>
          {note}
        </p>
      )}
    </div>
  )
}

type Texted<Attributes> = Labelled &
  Omit<Attributes, 'onChange'> & {
    /** Called with the text that the user types or chooses. */
    onText?(text: string): void
  }

export type FieldProps = Texted<InputHTMLAttributes<HTMLInputElement>>

export const Field = ({ label, hint, error, onText, ...rest }: FieldProps) => (
  <Labels label={label} hint={hint} error={error}>
    {(ids) => (
      <input className={CONTROL} onChange={({ target }) => onText?.(target.value)} {...ids} {...rest} />
    )}
  </Labels>
)

/** A field of an amount of credits. */
export const AmountField = (props: FieldProps) => (
  <Field required inputMode="decimal" pattern="\d+(\.\d{1,8})?" {...props} />
)

type SelectProps = Texted<SelectHTMLAttributes<HTMLSelectElement>> & {
  readonly options: Iterable<readonly [value: string | number, name: string]>
}

export const SelectField = ({ label, hint, error, options, onText, ...rest }: SelectProps) => (
  <Labels label={label} hint={hint} error={error}>
    {(ids) => (
      <select className={CONTROL} onChange={({ target }) => onText?.(target.value)} {...ids} {...rest}>
        {[...options].map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    )}
  </Labels>
)

export const TextAreaField = ({
  label,
  hint,
  error,
  isCode = false,
  onText,
  ...rest
}: { readonly isCode?: boolean } & Texted<TextareaHTMLAttributes<HTMLTextAreaElement>>) => (
  <Labels label={label} hint={hint} error={error}>
    {(ids) => (
      <textarea
        className={`w-full rounded-md border border-edge bg-surface px-2.5 py-1.5 placeholder:text-quiet aria-invalid:border-bad ${isCode ? 'font-mono text-xs' : 'text-base text-ink'}`}
        onChange={({ target }) => onText?.(target.value)}
        {...ids}
        {...rest}
      />
    )}
  </Labels>
)

interface CheckFieldProps extends Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange'> {
  readonly label: string
  readonly hint?: string
  onCheck(isChecked: boolean): void
}

export const CheckField = ({ label, hint, onCheck, ...rest }: CheckFieldProps) => {
  const id = useId()
  return (
    <div className="flex items-start gap-2">
      <input
        id={id}
        type="checkbox"
        aria-describedby={hint ? `${id}-note` : undefined}
        className="mt-0.5 size-4 accent-accent"
        onChange={({ target }) => onCheck(target.checked)}
        {...rest}
      />
      <div>
        <label htmlFor={id} className="text-base">
          {label}
        </label>
        {hint && (
          <p id={`${id}-note`} className="text-quiet text-xs">
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}

interface CheckFieldsProps<Value extends string> {
  readonly options: Iterable<readonly [value: Value, name: string]>
  readonly chosen: readonly Value[]
  readonly disabled?: boolean
  onChoose(chosen: readonly Value[]): void
}

/** A checkbox for each option. */
export const CheckFields = <Value extends string>(props: CheckFieldsProps<Value>) =>
  [...props.options].map(([value, name]) => (
    <CheckField
      key={value}
      label={name}
      checked={props.chosen.includes(value)}
      disabled={props.disabled}
      onCheck={(isChecked) =>
        props.onChoose(isChecked ? [...props.chosen, value] : props.chosen.filter((one) => one !== value))
      }
    />
  ))

/** Keeps the texts of a form; `field` makes the properties of one field. */
export function useFields<Texts extends object>(initial: Texts | (() => Texts)) {
  const [texts, setTexts] = useState(initial)
  const field = <Name extends keyof Texts>(name: Name) => ({
    value: texts[name],
    onText: (text: string) => setTexts((now) => ({ ...now, [name]: text })),
  })
  return { texts, field, setTexts }
}

/** The buttons at the end of a dialog. */
export const Actions = ({ children }: { readonly children: ReactNode }) => (
  <div className="mt-5 flex flex-wrap justify-end gap-2">{children}</div>
)

/** The button of a dialog that shows a result. */
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

/** The request of a form. */
interface Sends {
  readonly error: Error | null
  readonly isPending: boolean
  mutate(): unknown
}

interface DialogFormProps {
  /** The form shows why this was refused. */
  readonly sends: Sends
  /** The text of the button that sends. */
  readonly submit: string
  readonly kind?: ButtonKind
  readonly cancel?: string
  readonly isDisabled?: boolean
  readonly children?: ReactNode
  onClose(): void
}

/** The form of a dialog: fields, the error, and the buttons that cancel and send. */
export const DialogForm = ({
  sends,
  submit,
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
        {submit}
      </Button>
    </Actions>
  </Form>
)

interface PageFormProps {
  /** The form shows why this was refused. */
  readonly sends: Sends
  /** The text of the button that sends; null for those who may only read the fields. */
  readonly submit: string | null
  readonly kind?: ButtonKind
  /** Shown beside the button. */
  readonly note?: ReactNode
  readonly isAtEnd?: boolean
  readonly className?: string
  readonly children: ReactNode
}

/** A form in a page: fields, the error, and the button that sends. */
export const PageForm = ({
  sends,
  submit,
  kind,
  note,
  isAtEnd = false,
  className = 'flex flex-col gap-3 p-4',
  children,
}: PageFormProps) => (
  <Form className={className} onSubmit={() => submit !== null && sends.mutate()}>
    {children}
    {sends.error && (
      <div className="col-span-full">
        <FormError error={sends.error} />
      </div>
    )}
    {(submit !== null || note) && (
      <div className={`col-span-full flex flex-wrap items-center gap-3 ${isAtEnd ? 'mt-5 justify-end' : ''}`}>
        {submit !== null && (
          <Button type="submit" kind={kind} isBusy={sends.isPending}>
            {submit}
          </Button>
        )}
        {note}
      </div>
    )}
  </Form>
)
