/** Texts of one kind: ids, amounts, times, code, and the button that copies them. */
import { useEffect, useState } from 'react'
import { t } from '../i18n.ts'
import { timeZone } from '../time-zone.ts'

const COPIED_MS = 1_500

export function CopyButton({ text, label }: { readonly text: string; readonly label?: string }) {
  const [isCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return
    const timer = setTimeout(() => setCopied(false), COPIED_MS)
    return () => clearTimeout(timer)
  }, [isCopied])
  return (
    <button
      type="button"
      className="rounded px-1.5 py-0.5 text-quiet text-xs hover:bg-raised hover:text-ink"
      onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
    >
      <span aria-live="polite">{isCopied ? t('Copied') : (label ?? t('Copy'))}</span>
    </button>
  )
}

/** An id, whole for the clipboard. */
export const Id = ({ id }: { readonly id: string }) => (
  <span className="inline-flex max-w-full items-center gap-1">
    <code className="truncate font-mono text-xs" title={id}>
      {id}
    </code>
    <CopyButton text={id} />
  </span>
)

/** Groups the digits of a decimal text and keeps all decimals: an amount is never a floating-point number. */
export function printAmount(amount: string, minDecimals = 2): string {
  const [, sign = '', whole = '', decimals = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(amount) ?? []
  if (whole === '') return amount
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',')
  const fraction = decimals.padEnd(minDecimals, '0')
  return `${sign === '-' ? '−' : ''}${grouped}${fraction && `.${fraction}`}`
}

export const Money = ({ amount }: { readonly amount: string }) => (
  <span className="tabular whitespace-nowrap">{printAmount(amount)}</span>
)

/** Prints an instant as `2026-11-23 18:30:00`, in the time zone that the reader chose. */
export function printTime(instant: string): string {
  const date = new Date(instant)
  const options = timeZone() === 'utc' ? { timeZone: 'UTC' } : {}
  return date.toLocaleString('sv-SE', options)
}

export const Time = ({ at }: { readonly at: string }) => (
  <time dateTime={at} title={at} className="tabular whitespace-nowrap">
    {printTime(at)}
  </time>
)

interface CodeBlockProps {
  readonly code: string
  readonly label: string
  /** Breaks a text without spaces, such as a key, instead of scrolling it. */
  readonly isWrapped?: boolean
}

export function CodeBlock({ code, label, isWrapped = false }: CodeBlockProps) {
  const lines = isWrapped ? 'whitespace-pre-wrap break-all' : 'overflow-x-auto'
  return (
    <figure className="overflow-hidden rounded-md border border-line bg-raised">
      <figcaption className="flex items-center justify-between border-line border-b px-3 py-1 text-quiet text-xs">
        {label}
        <CopyButton text={code} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: without the focus a scrollable area cannot be scrolled by keyboard (axe, scrollable-region-focusable). */}
      <pre tabIndex={0} className={`p-3 font-mono text-xs leading-relaxed ${lines}`}>
        {code}
      </pre>
    </figure>
  )
}
