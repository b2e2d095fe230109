/** A link that opens a record on the same page; the URL keeps its other parameters. */
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'

interface OpenLinkProps {
  /** The parameter that names the record. */
  readonly search: {
    readonly [Name in 'agent' | 'base' | 'delivery' | 'key' | 'model' | 'open' | 'page']?: string
  }
  readonly children: ReactNode
}

export const OpenLink = ({ search, children }: OpenLinkProps) => (
  <Link to="." search={(all) => ({ ...all, ...search })} className="font-medium text-accent hover:underline">
    {children}
  </Link>
)
