import type { ButtonHTMLAttributes } from 'react'

const KINDS = {
  primary: 'bg-accent text-on-accent hover:opacity-90',
  plain: 'border border-line bg-surface text-ink hover:bg-raised',
  quiet: 'text-quiet hover:bg-raised hover:text-ink',
  danger: 'bg-bad text-on-accent hover:opacity-90',
} as const

export type ButtonKind = keyof typeof KINDS

const BUTTON =
  'inline-flex h-8 shrink-0 items-center justify-center gap-1.5 rounded-md px-3 font-medium text-sm whitespace-nowrap transition-colors disabled:opacity-50'

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly kind?: ButtonKind
  /** While true, the button is disabled. */
  readonly isBusy?: boolean
}

export const Button = ({
  kind = 'plain',
  isBusy = false,
  className = '',
  disabled,
  ...rest
}: ButtonProps) => (
  <button
    type="button"
    aria-busy={isBusy}
    disabled={disabled === true || isBusy}
    className={`${BUTTON} ${KINDS[kind]} ${className}`}
    {...rest}
  />
)
