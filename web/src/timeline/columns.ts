// Pieces of the blob: deflated columns of numbers, each column's lowest bytes first; crates/page/src/timeline/columns.rs writes them.

interface FromBase64 {
  fromBase64?(text: string): Uint8Array<ArrayBuffer>;
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as FromBase64).fromBase64;
  if (native !== undefined) return native.call(Uint8Array, text);
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < characters.length; at += 1) bytes[at] = characters.charCodeAt(at);
  return bytes;
}

/** The inflated bytes of a piece. */
export async function inflate(blob: string, at: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
  const first = (at / 3) * 4;
  const text = blob.slice(first, first + Math.ceil(length / 3) * 4);
  const bytes = bytesOf(text).subarray(0, length);
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(inflated).arrayBuffer());
}

/** Reads numbers from a piece, in the order in which they were written. */
export class Reader {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  private byte(): number {
    const byte = this.bytes[this.at];
    if (byte === undefined) throw new Error("a piece of the page's data ends early");
    this.at += 1;
    return byte;
  }

  number(): number {
    let value = 0;
    let factor = 1;
    for (;;) {
      const byte = this.byte();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
  }

  column(length: number): Float64Array {
    const values = new Float64Array(length);
    const width = this.byte();
    if (this.at + width * length > this.bytes.length) throw new Error("a column of the page's data ends early");
    let factor = 1;
    for (let plane = 0; plane < width; plane += 1) {
      const { bytes, at } = this;
      for (let row = 0; row < length; row += 1) values[row]! += bytes[at + row]! * factor;
      this.at += length;
      factor *= 256;
    }
    return values;
  }

  whole(length: number): Uint32Array {
    return Uint32Array.from(this.column(length));
  }

  /** Differences summed up, from `first` on, times `unit`. */
  rising(length: number, first: number, unit: number): Float64Array {
    const values = this.column(length);
    let sum = first;
    for (let row = 0; row < length; row += 1) {
      sum += values[row]!;
      values[row] = sum * unit;
    }
    return values;
  }

  scaled(length: number, unit: number): Float64Array {
    const values = this.column(length);
    if (unit !== 1) for (let row = 0; row < length; row += 1) values[row]! *= unit;
    return values;
  }
}

/** A number with a sign that was written as one without. */
export function unfolded(value: number): number {
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
}
