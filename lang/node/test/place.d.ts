// SPDX-License-Identifier: Apache-2.0
import { Client } from 'mortise';

export const LIMIT: number;
export function place(): { url: string; one: Client; other: Client };
export function name(): string;
export function until(condition: () => boolean | Promise<boolean>): Promise<void>;
