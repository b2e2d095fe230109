/** Form fields, and forms in pages and dialogs. */
import {
  type ComponentProps,
  createContext,
  type FormHTMLAttributes,
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useCallback,
  useContext,
  useEffect,
  useId,
  useRef,
  useState,
} from 'react'
import { ApiError } from '../api/client.ts'
import { parseAmount } from '../format.ts'
import { t } from '../i18n.ts'
import { Button, type ButtonKind } from './button.tsx'
import { type Fields, OpenDialogContext, useGuard } from './fields.ts'
import { FormError } from './states.tsx'

export const CONTROL =
  'h-8 w-full rounded-md border border-edge bg-surface px-2.5 text-base text-ink placeholder:text-quiet aria-invalid:border-bad'

interface Labelled {
  readonly label: string
  readonly hint?: string
  readonly error?: string | null
}

interface Problems {
  /** What is wrong with each field, by its name. */
  readonly fields: Readonly<Record<string, string>>
  /** What no field causes. */
  readonly other: Error | null
}

const ProblemsContext = createContext<Problems>({ fields: {}, other: null })

interface Ids {
  readonly id: string
  readonly name: string
  readonly 'aria-describedby': string | undefined
  readonly 'aria-invalid': boolean
}

interface LabelsProps extends Labelled {
  readonly name?: string | undefined
  children(ids: Ids): ReactNode
}

export function Labels({ label, hint, error: shown, name, children }: LabelsProps) {
  const id = useId()
  const problems = useContext(ProblemsContext)
  const error = shown ?? problems.fields[name ?? id]
  const note = error ?? hint
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="font-medium text-sm">
        {label}
      </label>
      {children({
        id,
        name: name ?? id,
        'aria-describedby': note ? `${id}-note` : undefined,
        'aria-invalid': Boolean(error),
      })}
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

export type FieldProps = Texted<ComponentProps<'input'>>

export const Field = ({ label, hint, error, onText, ...rest }: FieldProps) => (
  <Labels label={label} hint={hint} error={error} name={rest.name}>
    {(ids) => (
      <input className={CONTROL} onChange={({ target }) => onText?.(target.value)} {...rest} {...ids} />
    )}
  </Labels>
)

interface NumberFieldProps extends Omit<FieldProps, 'min' | 'max' | 'value'> {
  readonly value: string
  readonly min?: number
  readonly max?: number
  /** The most decimals; default: 0. */
  readonly decimals?: number
}

/** Says what is wrong with a number; empty if nothing is. */
function explainNumber(value: string, { min, max, decimals = 0 }: Omit<NumberFieldProps, 'label'>): string {
  if (value === '') return ''
  const [, fraction] = /^-?\d{1,12}(?:\.(\d*))?$/.exec(value) ?? [null, null]
  if (fraction === null) return t('Enter a number, such as 1,000.')
  if ((fraction?.length ?? 0) > decimals)
    return decimals === 0
      ? t('Enter a whole number.')
      : t('Enter at most {decimals} digits after the point.', { decimals })
  if (min !== undefined && Number(value) < min) return t('Enter {min} or more.', { min })
  if (max !== undefined && Number(value) > max) return t('Enter {max} or less.', { max })
  return ''
}

const isSame = (typed: string, value: string): boolean =>
  typed === value || (typed !== '' && value !== '' && Number(typed) === Number(value))

/** A field of a number, in any form that the console prints. `onText` gets its plain digits. */
export function NumberField(props: NumberFieldProps) {
  const { min, max, decimals = 0, value, onText, ...rest } = props
  const [typed, setTyped] = useState(value)
  return (
    <Field
      inputMode={decimals === 0 ? 'numeric' : 'decimal'}
      autoComplete="off"
      ref={(input) => input?.setCustomValidity(explainNumber(value, props))}
      // `1.` and `1,000` are 1 and 1000 on the way to what is meant.
      value={isSame(parseAmount(typed), value) ? typed : value}
      onText={(text) => {
        setTyped(text)
        onText?.(parseAmount(text))
      }}
      {...rest}
    />
  )
}

/** A field of an amount of credits. */
export const AmountField = (props: NumberFieldProps) => (
  <NumberField required decimals={8} min={0} {...props} />
)

type SelectProps = Texted<SelectHTMLAttributes<HTMLSelectElement>> & {
  readonly options: Iterable<readonly [value: string | number, name: string]>
}

export const SelectField = ({ label, hint, error, options, onText, ...rest }: SelectProps) => (
  <Labels label={label} hint={hint} error={error} name={rest.name}>
    {(ids) => (
      <select className={CONTROL} onChange={({ target }) => onText?.(target.value)} {...rest} {...ids}>
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
  <Labels label={label} hint={hint} error={error} name={rest.name}>
    {(ids) => (
      <textarea
        className={`w-full rounded-md border border-edge bg-surface px-2.5 py-1.5 placeholder:text-quiet aria-invalid:border-bad ${isCode ? 'font-mono text-xs' : 'text-base text-ink'}`}
        onChange={({ target }) => onText?.(target.value)}
        {...rest}
        {...ids}
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

/** Says what is wrong with what a control has, in our words: those of browsers differ and name no example. */
function explainControl(control: HTMLInputElement): string {
  const { validity } = control
  if (validity.valueMissing) return t('Fill in this field.')
  if (validity.typeMismatch && control.type === 'email')
    return t('Enter an email address, such as ada@example.com.')
  if (validity.typeMismatch) return t('Enter an address that begins with https://.')
  if (validity.tooShort) return t('Enter at least {count} characters.', { count: control.minLength })
  if (validity.badInput) return t('Enter a complete date and time.')
  return control.validationMessage
}

/** Returns the field that a refusal names, and what is wrong with it. */
function readRefusal(error: Error | null): readonly [field: string, message: string] | null {
  if (!(error instanceof ApiError) || error.code !== 'invalid_request') return null
  const [, field, message = ''] = /^([a-z_]+)(?:\.\w+)*: (.+)$/s.exec(error.message) ?? []
  return field === undefined ? null : [field, message.charAt(0).toUpperCase() + message.slice(1)]
}

interface FormProps extends Omit<FormHTMLAttributes<HTMLFormElement>, 'onSubmit'> {
  /** Why what it sent was refused: shown beside the field that it names, else by `FormProblem`. */
  readonly error?: Error | null
  onSubmit(): unknown
}

/** Checks the fields when the user submits, and shows each problem beside its field until the user changes it. */
export function Form({ error = null, onSubmit, ...rest }: FormProps) {
  const form = useRef<HTMLFormElement>(null)
  const [fields, setFields] = useState<Problems['fields']>({})
  const [other, setOther] = useState<Error | null>(null)
  const show = useCallback((problems: Problems['fields']) => {
    setFields(problems)
    const first = [...(form.current?.elements ?? [])].find(
      (one) => (one as HTMLInputElement).name in problems,
    )
    if (first) (first as HTMLElement).focus()
  }, [])
  // A refusal is shown once, until the user changes the field.
  useEffect(() => {
    const refusal = readRefusal(error)
    const isShown = refusal !== null && form.current?.elements.namedItem(refusal[0]) != null
    setOther(isShown ? null : error)
    if (isShown) show({ [refusal[0]]: refusal[1] })
  }, [error, show])
  return (
    <ProblemsContext value={{ fields, other }}>
      <form
        ref={form}
        noValidate
        // Not `onInput`: a select that is rendered again between its input and its change loses the change.
        onChange={({ target }) => {
          const { [(target as HTMLElement as HTMLInputElement).name]: _, ...left } = fields
          setFields(left)
          setOther(null)
        }}
        onSubmit={(event) => {
          event.preventDefault()
          // A form in a dialog is, for React, within the form that opened it.
          event.stopPropagation()
          const controls = [...event.currentTarget.elements] as HTMLInputElement[]
          const wrong = controls.filter(({ validity }) => validity?.valid === false)
          if (wrong.length > 0) show(Object.fromEntries(wrong.map((one) => [one.name, explainControl(one)])))
          else onSubmit()
        }}
        {...rest}
      />
    </ProblemsContext>
  )
}

/** Shows in a form why it was refused, unless a field shows it. */
export const FormProblem = () => <FormError error={useContext(ProblemsContext).other} />

/** Says that a form begins with what its user typed earlier. */
function RestoredNote({ fields }: { readonly fields: Fields | undefined }) {
  if (!fields?.isRestored) return null
  return (
    <p role="status" className="col-span-full flex flex-wrap items-center gap-2 text-quiet text-sm">
      {t('This is what you typed earlier and did not send.')}
      <Button kind="quiet" onClick={fields.forget}>
        {t('Start over')}
      </Button>
    </p>
  )
}

/** The request of a form. */
interface Sends {
  readonly error: Error | null
  readonly isPending: boolean
  mutateAsync(): Promise<unknown>
}

/** Sends what a form has; a draft has then served its purpose. */
const sendForm = (sends: Sends, fields: Fields | undefined): void =>
  void sends.mutateAsync().then(fields?.keep, () => undefined)

interface DialogFormProps {
  /** The form shows why this was refused. */
  readonly sends: Sends
  readonly fields?: Fields
  /** The text of the button that sends. */
  readonly submit: string
  readonly kind?: ButtonKind
  readonly cancel?: string
  readonly isDisabled?: boolean
  readonly children?: ReactNode
}

/** The form of a dialog: fields, the error, and the buttons that cancel and send. */
export function DialogForm({
  sends,
  fields,
  submit,
  kind = 'primary',
  cancel = t('Cancel'),
  isDisabled = false,
  children,
}: DialogFormProps) {
  const dialog = useContext(OpenDialogContext)
  useGuard(fields)
  return (
    <Form className="flex flex-col gap-4" error={sends.error} onSubmit={() => sendForm(sends, fields)}>
      <RestoredNote fields={fields} />
      {children}
      <FormProblem />
      <Actions>
        <Button onClick={dialog?.close}>{cancel}</Button>
        <Button type="submit" kind={kind} disabled={isDisabled} isBusy={sends.isPending}>
          {submit}
        </Button>
      </Actions>
    </Form>
  )
}

interface PageFormProps {
  /** The form shows why this was refused. */
  readonly sends: Sends
  readonly fields?: Fields
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
export function PageForm({
  sends,
  fields,
  submit,
  kind,
  note,
  isAtEnd = false,
  className = 'flex flex-col gap-3 p-4',
  children,
}: PageFormProps) {
  useGuard(fields)
  return (
    <Form
      className={className}
      error={sends.error}
      onSubmit={() => submit !== null && sendForm(sends, fields)}
    >
      <RestoredNote fields={fields} />
      {children}
      <div className="col-span-full empty:hidden">
        <FormProblem />
      </div>
      {(submit !== null || note) && (
        <div
          className={`col-span-full flex flex-wrap items-center gap-3 ${isAtEnd ? 'mt-5 justify-end' : ''}`}
        >
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
}
